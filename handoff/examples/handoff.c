// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a runtime of functions needs of krcore to hand data over: give_away() at the function
 * that has them, fetch() at the one that wants them, 24 bytes between. The rest is a program to
 * try it with:
 *
 *	krcore-example-handoff give TEXT	print the 24 bytes; the text is there until Enter
 *	krcore-example-handoff fetch BYTES	print the text
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <krcore/queue.h>

#define MOST (64U << 20) /* bytes to be fetched: how many there are is what another says */

/* Let peers READ @memory. Return: bytes of @packed, for the invocation; or a negative errno. */
static int give_away(struct krcore_node *node, void *memory, size_t bytes, struct krcore_mr *mr,
		     uint8_t packed[KRCORE_PACKED_MAX])
{
	struct krcore_port_info port = { .size = sizeof(port) };
	struct krcore_region_ref ref;
	int err = krcore_node_port(node, 0, &port); /* that the node uses */

	if (!err)
		err = krcore_mr_reg(node, memory, bytes, KRCORE_ACCESS_REMOTE_READ, mr);
	if (err)
		return err;
	krcore_region_ref_of(mr, &ref);
	return krcore_region_pack(port.gid, &ref, packed);
}

/*
 * Fetch what @packed names, as the first thing that a process does with krcore. Return: 0, and
 * *@ret_bytes of them in *@ret_memory; or a negative errno: -EMSGSIZE if they are more than MOST.
 * Tell the owner afterwards: it has to free them.
 */
static int fetch(const uint8_t *packed, size_t nr, void **ret_memory, size_t *ret_bytes)
{
	struct krcore_start_options opts = { .size = sizeof(opts), .nr = 1 };
	struct krcore_started started = { .size = sizeof(started) };
	struct krcore_wr wr = { .opcode = KRCORE_OP_READ };
	struct krcore_region_ref ref;
	struct krcore_wc wc = { 0 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int err = krcore_region_unpack(packed, nr, opts.peer.gid, &ref);

	if (err)
		return err;
	if (ref.length > MOST)
		return -EMSGSIZE;
	opts.length = (ref.length + page - 1) / page * page;
	opts.memory = aligned_alloc(page, opts.length);
	if (!opts.memory)
		return -ENOMEM;
	opts.access = KRCORE_ACCESS_LOCAL_WRITE;
	opts.wrs = &wr;
	wr.local_addr = (uintptr_t)opts.memory;
	wr.remote_addr = ref.addr;
	wr.remote_token = ref.token;
	wr.length = (uint32_t)ref.length;
	err = krcore_start(&opts, &started); /* opens, registers, connects and READs */
	if (!err) {
		err = started.error;
		while (!err && !(err = krcore_poll(started.node, &wc, 1)))
			err = krcore_wait(started.node, 10000);
		if (err == 1)
			err = wc.status;
		if (err) /* the READ may be under way: it ends before its memory is freed */
			krcore_mr_dereg(started.node, &started.mr);
		krcore_node_close(started.node);
	}
	if (err) {
		free(opts.memory);
		return err;
	}
	*ret_memory = opts.memory;
	*ret_bytes = ref.length;
	return 0;
}

static int give(char *text)
{
	uint8_t packed[KRCORE_PACKED_MAX] = { 0 };
	struct krcore_node *node;
	struct krcore_mr mr;
	int i, nr = krcore_node_open(NULL, &node);

	if (nr)
		return nr;
	nr = give_away(node, text, strlen(text), &mr, packed);
	for (i = 0; i < nr; i++)
		printf("%02x", packed[i]);
	printf("\n");
	fflush(stdout);
	if (nr > 0)
		getchar(); /* a runtime waits for the other function, or for the end of a lease */
	krcore_node_close(node); /* takes the memory back; no peer can READ it any more */
	return nr < 0 ? nr : 0;
}

static int take(const char *hex)
{
	uint8_t packed[KRCORE_PACKED_MAX];
	char digits[3] = "", *end = digits + 2;
	void *memory = NULL;
	size_t nr, bytes = 0;
	int err;

	for (nr = 0; nr < sizeof(packed) && hex[2 * nr] && end == digits + 2; nr++) {
		memcpy(digits, hex + 2 * nr, 2);
		packed[nr] = (uint8_t)strtoul(digits, &end, 16);
	}
	err = fetch(packed, end == digits + 2 ? nr : 0, &memory, &bytes);
	if (!err && fwrite(memory, 1, bytes, stdout) == bytes)
		printf("\n");
	free(memory);
	return err;
}

int main(int argc, char **argv)
{
	int err;

	if (argc != 3 || !*argv[2] || (strcmp(argv[1], "give") && strcmp(argv[1], "fetch"))) {
		fprintf(stderr, "usage: krcore-example-handoff give TEXT\n"
				"       krcore-example-handoff fetch BYTES\n");
		return 2;
	}
	err = strcmp(argv[1], "give") ? take(argv[2]) : give(argv[2]);
	if (err)
		fprintf(stderr, "krcore-example-handoff: %s (%s)\n", strerror(-err),
			krcore_error_text());
	return err ? 1 : 0;
}
