// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The meter of ./run bench cost: a TCG plugin of QEMU that counts what a guest executes, and
 * what it executes between marks (bench/meter.h, kmod/base/meter.h) of its programs and of
 * its kernel. x86-64, one processor, version 1 of QEMU's plugin interface.
 *
 *	-plugin FOLDER/meter.so,out=FILE[,profile=on]
 *
 * FILE is mapped and shared, so that whoever reads it (cost/_meter.py) sees counters and
 * records at any time, without a word to the guest.
 *
 * Each instruction is counted by itself: counted by block, one that crosses a page would be
 * counted twice. REP string instructions come once a turn, so their turns have counters of
 * their own and are no instructions. On one processor Linux turns LOCK into DS; both count.
 * With profile=on it is counted, too, at which addresses of the kernel an operation's
 * instructions were executed; that makes the guest slower and changes no count.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <qemu-plugin.h>

QEMU_PLUGIN_EXPORT int qemu_plugin_version = 1;

#define MT_MAGIC 0x3174656d2e72636bULL
#define MT_RECORDS_MAX (1U << 16)
#define MT_TABLE_AT 4096 /* bytes before the records */
#define MT_PLACES_MAX (1U << 18) /* behind the records; place 0 takes what finds no other */
#define MT_PLACE_BYTES 16 /* of code; functions begin at such a boundary */

/* What is counted; mt_names has their names for the reader. */
enum mt_counter {
	MT_USER, /* instructions, and turns of REP strings */
	MT_KERNEL,
	MT_REP_USER, /* turns of REP strings alone */
	MT_REP_KERNEL,
	MT_SYSCALL,
	MT_IRET, /* back from interrupts and exceptions */
	MT_CR3, /* page tables switched */
	MT_LOCK_USER, /* LOCK, and XCHG with memory */
	MT_LOCK_KERNEL,
	MT_FENCE, /* LFENCE, SFENCE, MFENCE */
	MT_HLT,
	MT_COUNTERS,
};

static const char mt_names[] = "user kernel rep_user rep_kernel syscalls irets cr3 lock_user "
			       "lock_kernel fences hlt";

/* What a mark does. */
enum mt_mark {
	MT_BEGIN = 1,
	MT_END,
	MT_TRY,
	MT_VAIN,
	MT_PAUSE,
	MT_RESUME,
};

/* One operation: what it took, without what was in vain (how often: vain) or paused. */
struct mt_record {
	uint64_t vain;
	uint64_t took[MT_COUNTERS];
};

/* Instructions that all operations so far executed at these MT_PLACE_BYTES of the kernel. */
struct mt_place {
	uint64_t address;
	uint64_t took;
	uint64_t quiet; /* of it in operations that no interrupt came into */
};

/* The head of the file. */
struct mt_shared {
	uint64_t magic;
	uint32_t counters;
	uint32_t table_at;
	uint32_t records_max;
	uint32_t processors;
	uint64_t records; /* so far; number n is at n % records_max */
	uint64_t live[MT_COUNTERS];
	char names[256];
	uint32_t places_at; /* 0: no profile */
	uint32_t places; /* so far, place 0 included */
	uint64_t quiet; /* records so far that no interrupt came into */
};

static struct mt_shared *mt_shared;
static struct mt_record *mt_table;
static struct mt_place *mt_places;

/* There is one processor, so all marks come from one thread. */
static struct {
	uint64_t excluded[MT_COUNTERS];
	uint64_t begun[MT_COUNTERS];
	uint64_t tried[MT_COUNTERS];
	uint64_t paused[MT_COUNTERS];
	uint64_t vain;
} mt;

/* The same for each place, if there is a profile. */
struct mt_profile {
	uint64_t live[MT_PLACES_MAX];
	uint64_t excluded[MT_PLACES_MAX];
	uint64_t begun[MT_PLACES_MAX];
	uint64_t tried[MT_PLACES_MAX];
	uint64_t paused[MT_PLACES_MAX];
};

static struct mt_profile *mt_profile;

/* Remember what was counted at each place so far, less what is excluded if @net. */
static void mt_places_note(uint64_t *note, bool net)
{
	for (uint32_t i = 0; i < mt_shared->places; i++)
		note[i] = mt_profile->live[i] - (net ? mt_profile->excluded[i] : 0);
}

static void mt_places_exclude_since(const uint64_t *since)
{
	for (uint32_t i = 0; i < mt_shared->places; i++)
		mt_profile->excluded[i] += mt_profile->live[i] - since[i];
}

static void mt_places_end(bool quiet)
{
	for (uint32_t i = 0; i < mt_shared->places; i++) {
		uint64_t took =
			mt_profile->live[i] - mt_profile->excluded[i] - mt_profile->begun[i];

		mt_places[i].took += took;
		mt_places[i].quiet += quiet ? took : 0;
	}
}

static void mt_places_marked(enum mt_mark mark)
{
	switch (mark) {
	case MT_BEGIN:
		mt_places_note(mt_profile->begun, true);
		break;
	case MT_END: /* counted with the record */
		break;
	case MT_TRY:
		mt_places_note(mt_profile->tried, false);
		break;
	case MT_VAIN:
		mt_places_exclude_since(mt_profile->tried);
		break;
	case MT_PAUSE:
		mt_places_note(mt_profile->paused, false);
		break;
	case MT_RESUME:
		mt_places_exclude_since(mt_profile->paused);
		break;
	}
}

/* The place of an address: found or new, by open addressing over its hash. */
static uint32_t mt_place_of(uint64_t address)
{
	static uint32_t at[2 * MT_PLACES_MAX]; /* hash to place; 0: free */
	uint64_t where = address / MT_PLACE_BYTES;
	uint32_t hash = (uint32_t)(where * 0x9e3779b97f4a7c15ULL >> 32) % (2 * MT_PLACES_MAX);

	for (; at[hash]; hash = (hash + 1) % (2 * MT_PLACES_MAX))
		if (mt_places[at[hash]].address == where * MT_PLACE_BYTES)
			return at[hash];
	if (mt_shared->places == MT_PLACES_MAX)
		return 0;
	at[hash] = mt_shared->places++;
	mt_places[at[hash]].address = where * MT_PLACE_BYTES;
	return at[hash];
}

static void mt_exclude_since(const uint64_t *since)
{
	for (int i = 0; i < MT_COUNTERS; i++)
		mt.excluded[i] += mt_shared->live[i] - since[i];
}

static void mt_end(void)
{
	struct mt_record *record = &mt_table[mt_shared->records % MT_RECORDS_MAX];

	record->vain = mt.vain;
	for (int i = 0; i < MT_COUNTERS; i++)
		record->took[i] = mt_shared->live[i] - mt.excluded[i] - mt.begun[i];
	mt_shared->quiet += !record->took[MT_IRET];
	if (mt_profile)
		mt_places_end(!record->took[MT_IRET]);
	__atomic_store_n(&mt_shared->records, mt_shared->records + 1, __ATOMIC_RELEASE);
}

static void mt_marked(unsigned int processor, void *arg)
{
	(void)processor;
	if (mt_profile)
		mt_places_marked((enum mt_mark)(uintptr_t)arg);
	switch ((enum mt_mark)(uintptr_t)arg) {
	case MT_BEGIN:
		for (int i = 0; i < MT_COUNTERS; i++)
			mt.begun[i] = mt_shared->live[i] - mt.excluded[i];
		mt.vain = 0;
		break;
	case MT_END:
		mt_end();
		break;
	case MT_TRY:
		memcpy(mt.tried, mt_shared->live, sizeof(mt.tried));
		break;
	case MT_VAIN:
		mt_exclude_since(mt.tried);
		mt.vain++;
		break;
	case MT_PAUSE:
		memcpy(mt.paused, mt_shared->live, sizeof(mt.paused));
		break;
	case MT_RESUME:
		mt_exclude_since(mt.paused);
		break;
	}
}

/* An instruction, taken apart as far as it is needed here. */
struct mt_insn {
	bool lock, ds, f2, f3;
	bool two; /* 0F OPCODE */
	uint8_t opcode;
	bool modrm; /* there is one: */
	uint8_t mod, reg, byte;
};

static bool mt_prefix(struct mt_insn *d, uint8_t byte)
{
	static const uint8_t others[] = { 0x66, 0x67, 0x2e, 0x36, 0x26, 0x64, 0x65 };

	d->lock |= byte == 0xf0;
	d->ds |= byte == 0x3e;
	d->f2 |= byte == 0xf2;
	d->f3 |= byte == 0xf3;
	return byte == 0xf0 || byte == 0x3e || byte == 0xf2 || byte == 0xf3 ||
	       memchr(others, byte, sizeof(others));
}

static bool mt_decode(const uint8_t *p, size_t n, struct mt_insn *d)
{
	size_t i = 0;

	memset(d, 0, sizeof(*d));
	while (i < n && mt_prefix(d, p[i]))
		i++;
	if (i < n && (p[i] & 0xf0) == 0x40)
		i++; /* REX */
	d->two = i < n && p[i] == 0x0f;
	i += d->two;
	if (i >= n)
		return false;
	d->opcode = p[i++];
	d->modrm = i < n;
	d->byte = d->modrm ? p[i] : 0;
	d->mod = d->byte >> 6;
	d->reg = d->byte >> 3 & 7;
	return true;
}

/* Whether LOCK is allowed: the instruction reads, modifies and writes memory. */
static bool mt_lockable(const struct mt_insn *d)
{
	uint8_t o = d->opcode;

	if (!d->modrm || d->mod == 3)
		return false;
	if (d->two) /* CMPXCHG, XADD, BTS, BTR, BTC, CMPXCHG8B */
		return o == 0xb0 || o == 0xb1 || o == 0xc0 || o == 0xc1 || o == 0xab || o == 0xb3 ||
		       o == 0xbb || (o == 0xba && d->reg >= 5) || (o == 0xc7 && d->reg == 1);
	if (o < 0x38) /* ADD OR ADC SBB AND SUB XOR */
		return (o & 7) <= 1;
	return ((o == 0x80 || o == 0x81 || o == 0x83) && d->reg != 7) ||
	       ((o == 0xf6 || o == 0xf7) && (d->reg == 2 || d->reg == 3)) || /* NOT NEG */
	       ((o == 0xfe || o == 0xff) && d->reg <= 1); /* INC DEC */
}

static bool mt_locks(const struct mt_insn *d, bool kernel)
{
	bool exchange = !d->two && (d->opcode & 0xfe) == 0x86 && d->modrm && d->mod != 3;

	return d->lock || exchange || (kernel && d->ds && mt_lockable(d));
}

/* Counter of an instruction besides that of all instructions, or -1. */
static int mt_class(const struct mt_insn *d, bool kernel)
{
	uint8_t o = d->opcode;

	if (mt_locks(d, kernel))
		return kernel ? MT_LOCK_KERNEL : MT_LOCK_USER;
	if (d->two) {
		if (o == 0x05)
			return MT_SYSCALL;
		if (o == 0x22 && d->reg == 3)
			return MT_CR3;
		return o == 0xae && d->byte >= 0xe8 && !d->f3 && !d->f2 ? MT_FENCE : -1;
	}
	if ((d->f2 || d->f3) && ((o >= 0xa4 && o <= 0xa7) || (o >= 0xaa && o <= 0xaf)))
		return kernel ? MT_REP_KERNEL : MT_REP_USER;
	if (o == 0xcf)
		return MT_IRET;
	return o == 0xf4 ? MT_HLT : -1;
}

/* nopl 0x6b7200OP(%rax). Return: OP, or 0 if it is none. */
static uint8_t mt_mark_of(const uint8_t *p, size_t n)
{
	if (n != 7 || memcmp(p, "\x0f\x1f\x80", 3) || memcmp(p + 4, "\0\x72\x6b", 3))
		return 0;
	return p[3] >= MT_BEGIN && p[3] <= MT_RESUME ? p[3] : 0;
}

static void mt_count(struct qemu_plugin_insn *insn, uint64_t *counter)
{
	qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, counter, 1);
}

static void mt_instrument(struct qemu_plugin_insn *insn, bool kernel)
{
	const uint8_t *bytes = qemu_plugin_insn_data(insn);
	size_t size = qemu_plugin_insn_size(insn);
	uint8_t mark = mt_mark_of(bytes, size);
	struct mt_insn d;

	if (mark) { /* itself it is not counted */
		qemu_plugin_register_vcpu_insn_exec_cb(insn, mt_marked, QEMU_PLUGIN_CB_NO_REGS,
						       (void *)(uintptr_t)mark);
		return;
	}
	mt_count(insn, &mt_shared->live[kernel ? MT_KERNEL : MT_USER]);
	if (mt_decode(bytes, size, &d) && mt_class(&d, kernel) >= 0)
		mt_count(insn, &mt_shared->live[mt_class(&d, kernel)]);
	if (kernel && mt_profile)
		mt_count(insn, &mt_profile->live[mt_place_of(qemu_plugin_insn_vaddr(insn))]);
}

static void mt_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	bool kernel = qemu_plugin_tb_vaddr(tb) >> 63;

	(void)id;
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++)
		mt_instrument(qemu_plugin_tb_get_insn(tb, i), kernel);
}

/* Map a file of so many bytes. Return: 0, or -1 with errno. */
static int mt_map(const char *path, size_t bytes)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	void *map = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, (off_t)bytes))
		map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (map == MAP_FAILED)
		return -1;
	mt_shared = map;
	return 0;
}

static int mt_open(const char *path, bool profile)
{
	size_t places_at = MT_TABLE_AT + sizeof(struct mt_record) * MT_RECORDS_MAX;

	if (mt_map(path, places_at + (profile ? sizeof(struct mt_place) * MT_PLACES_MAX : 0)))
		return -1;
	if (profile) {
		mt_profile = calloc(1, sizeof(*mt_profile));
		if (!mt_profile)
			return -1;
		mt_places = (struct mt_place *)((char *)mt_shared + places_at);
		mt_shared->places_at = (uint32_t)places_at;
		mt_shared->places = 1;
	}
	mt_table = (struct mt_record *)((char *)mt_shared + MT_TABLE_AT);
	mt_shared->counters = MT_COUNTERS;
	mt_shared->table_at = MT_TABLE_AT;
	mt_shared->records_max = MT_RECORDS_MAX;
	mt_shared->processors = 1;
	memcpy(mt_shared->names, mt_names, sizeof(mt_names));
	__atomic_store_n(&mt_shared->magic, MT_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
					   char **argv)
{
	const char *path = NULL;
	bool profile = false, known = true;

	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "out=", 4))
			path = argv[i] + 4;
		else if (!strcmp(argv[i], "profile=on"))
			profile = true;
		else
			known = false;
	}
	if (!path || !known || !info->system_emulation || info->system.max_vcpus != 1 ||
	    strcmp(info->target_name, "x86_64") != 0) {
		fprintf(stderr, "meter: wants x86-64 with one processor, and out=FILE\n");
		return -1;
	}
	if (mt_open(path, profile)) {
		fprintf(stderr, "meter: %s: %s\n", path, strerror(errno));
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, mt_translated);
	return 0;
}
