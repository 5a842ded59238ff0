// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Requests that no tool sends, to the netlink family of the module: each must be
 * refused with its errno and a text that names the attribute, and change nothing.
 *
 *   krc_genl bad               the cases below
 *   krc_genl denied            NODE_UP and NODE_DOWN without CAP_NET_ADMIN
 *   krc_genl random SEED NR    requests with random faults; the module must survive
 *   krc_genl faults FIRST STEP out of memory at the allocations FIRST, FIRST + STEP and so on of
 *                              NODE_UP, at one each time
 *   krc_genl lack FIRST STEP   NODE_UP again and again, with the allocations FIRST, FIRST + STEP
 *                              and so on failing: a node that is up gets its port by itself
 */
#include <errno.h>
#include <linux/genetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/metactl/module.h"
#include "tests/module/fail_nth.h"

#define MISSING (-1)
#define KRC_PORT_LOOK_US 200000
#define KRC_PORT_LOOKS 900 /* at a port that makes itself again after seconds */

/**
 * struct krc_case - A good request with one thing wrong.
 * @name: for diagnostics.
 * @nest: the thing is in the MetaServer's nest.
 * @type: attribute.
 * @data: instead of the good value.
 * @bytes: of @data; MISSING leaves the attribute out.
 * @servers: how often the MetaServer is given.
 * @error: errno wanted.
 * @text: the explanation must have this in it.
 */
struct krc_case {
	const char *name;
	bool nest;
	uint16_t type;
	const void *data;
	int bytes;
	unsigned int servers;
	int error;
	const char *text;
};

static const uint32_t numbers[] = { 0, 1, 9, 90000000, 700000, 20000000, 257, 8193 };
static const uint16_t zero16;
static const uint8_t zeroes[64];
static const uint8_t ones[64] = { [0 ... 63] = 1 };
static const uint8_t multicast[4] = { 224, 0, 0, 1 };
static const uint8_t multicast6[16] = { 0xff, 2, [15] = 1 };
static const uint8_t local6[16] = { 0xfe, 0x80, [15] = 1 };
static const uint8_t mapped6[16] = { [10] = 0xff, 0xff, 192, 0, 2, 1 };
static char long_name[200];
static uint64_t krc_generation = 1;

#define NODE(what, attr, data, bytes, error, text) \
	{ \
		what, false, KRP_GENL_A_NODE_##attr, data, bytes, 1, error, text \
	}
#define SERVER(what, attr, data, bytes, error, text) \
	{ \
		what, true, KRP_GENL_A_SERVER_##attr, data, bytes, 1, error, text \
	}

static const struct krc_case krc_cases[] = {
	NODE("no owner", OWNER, NULL, MISSING, -EINVAL, "owner: "),
	NODE("short owner", OWNER, ones, 15, -ERANGE, "owner: "),
	NODE("long owner", OWNER, ones, 17, -ERANGE, "owner: "),
	NODE("zero owner", OWNER, zeroes, 16, -EINVAL, "owner: the identity"),
	NODE("no generation", GENERATION, NULL, MISSING, -EINVAL, "generation: "),
	NODE("zero generation", GENERATION, zeroes, 8, -ERANGE, "generation: "),
	NODE("32-bit generation", GENERATION, ones, 4, -EINVAL, "generation: "),
	NODE("no name", NAME, NULL, MISSING, -EINVAL, "name: "),
	NODE("empty name", NAME, "", 1, -EINVAL, "name: the name of the node is empty"),
	NODE("long name", NAME, long_name + sizeof(long_name) - 66, 66, -EINVAL, "name: "),
	NODE("name without end", NAME, "node", 4, -EINVAL, "name: "),
	NODE("short key", KEY, ones, 15, -ERANGE, "key: "),
	NODE("long key", KEY, ones, 65, -ERANGE, "key: "),
	NODE("out attribute", UP, ones, 1, -EINVAL, "up: "),
	NODE("out attribute", AUTH, ones, 1, -EINVAL, "auth: "),
	NODE("lease", LEASE_MS, &numbers[3], 4, -ERANGE, "lease_ms: "),
	NODE("no time-out", TIMEOUT_MS, NULL, MISSING, -EINVAL, "timeout_ms: "),
	NODE("short time-out", TIMEOUT_MS, &numbers[2], 4, -ERANGE, "timeout_ms: "),
	NODE("long time-out", TIMEOUT_MS, &numbers[4], 4, -ERANGE, "timeout_ms: "),
	NODE("reconnect pauses", RECONNECT_MIN_MS, &numbers[4], 4, -EINVAL,
	     "reconnect_min_ms: the first pause"),
	NODE("short pause", RECONNECT_MAX_MS, &numbers[2], 4, -ERANGE, "reconnect_max_ms: "),
	NODE("initiators", POOL_INITIATORS, &numbers[6], 4, -ERANGE, "pool_initiators: "),
	NODE("no depth", POOL_DEPTH, NULL, MISSING, -EINVAL, "pool_depth: "),
	NODE("small depth", POOL_DEPTH, &numbers[1], 4, -ERANGE, "pool_depth: "),
	NODE("large depth", POOL_DEPTH, &numbers[7], 4, -ERANGE, "pool_depth: "),
	NODE("16-bit depth", POOL_DEPTH, numbers, 2, -EINVAL, "pool_depth: "),
	NODE("no ack time-out", ACK_TIMEOUT, NULL, MISSING, -EINVAL, "ack_timeout: "),
	NODE("ack time-out", ACK_TIMEOUT, &numbers[1], 4, -ERANGE, "ack_timeout: "),
	NODE("no margin", MARGIN_MS, NULL, MISSING, -EINVAL, "margin_ms: "),
	NODE("margin", MARGIN_MS, &numbers[1], 4, -ERANGE, "margin_ms: "),
	NODE("cache", CACHE_ENTRIES, &numbers[5], 4, -ERANGE, "cache_entries: "),
	NODE("queues", QUEUES_PER_USER, &numbers[5], 4, -ERANGE, "queues_per_user: "),
	NODE("requests", REQUESTS_PER_USER, &numbers[5], 4, -ERANGE, "requests_per_user: "),
	NODE("regions", MRS_PER_USER, &numbers[5], 4, -ERANGE, "mrs_per_user: "),
	NODE("traffic class", TRAFFIC_CLASS, &numbers[7], 4, -ERANGE, "traffic_class: "),
	NODE("service level", SERVICE_LEVEL, &numbers[7], 4, -ERANGE, "service_level: "),
	NODE("no partition", PKEY, NULL, MISSING, -EINVAL, "pkey: "),
	NODE("partition 0", PKEY, zeroes, 4, -ERANGE, "pkey: "),
	NODE("packets", MTU, &numbers[7], 4, -ERANGE, "mtu: "),
	NODE("long device", DEVICE, long_name + sizeof(long_name) - 66, 66, -EINVAL, "device: "),
	NODE("unknown attribute", MAX + 1, ones, 4, -EINVAL, "unknown attribute: "),
	SERVER("no address", ADDRESS, NULL, MISSING, -EINVAL, "server address: "),
	SERVER("short address", ADDRESS, ones, 3, -ERANGE, "server address: "),
	SERVER("odd address", ADDRESS, ones, 5, -EINVAL, "server address: an address has"),
	SERVER("zero address", ADDRESS, zeroes, 4, -EINVAL, "server address: not the address"),
	SERVER("zero address", ADDRESS, zeroes, 16, -EINVAL, "server address: not the address"),
	SERVER("multicast", ADDRESS, multicast, 4, -EINVAL, "server address: not the address"),
	SERVER("multicast", ADDRESS, multicast6, 16, -EINVAL, "server address: not the address"),
	SERVER("local address", ADDRESS, local6, 16, -EINVAL, "server address: not the address"),
	SERVER("mapped address", ADDRESS, mapped6, 16, -EINVAL, "server address: not the address"),
	SERVER("no port", PORT, NULL, MISSING, -EINVAL, "server server_port: "),
	SERVER("port 0", PORT, &zero16, 2, -ERANGE, "server server_port: "),
	SERVER("no name", NAME, NULL, MISSING, -EINVAL, "server name: "),
	SERVER("long name", NAME, long_name + sizeof(long_name) - 82, 82, -EINVAL, "server name: "),
	SERVER("out attribute", STATE, ones, 1, -EINVAL, "server state: "),
	{ "server twice", false, 0, NULL, 0, 2, -EEXIST, "server: this MetaServer is given twice" },
};

/* Put an attribute, or what is wrong in place of it. */
static void krc_put(struct nlmsghdr *nlh, const struct krc_case *c, bool nest, uint16_t type,
		    const void *data, size_t bytes)
{
	if (!c || c->nest != nest || c->type != type)
		mnl_attr_put(nlh, type, bytes, data);
	else if (c->bytes != MISSING)
		mnl_attr_put(nlh, type, (size_t)c->bytes, c->data);
}

static void krc_put_u32(struct nlmsghdr *nlh, const struct krc_case *c, uint16_t type, uint32_t n)
{
	krc_put(nlh, c, false, type, &n, sizeof(n));
}

static void krc_put_server(struct nlmsghdr *nlh, const struct krc_case *c)
{
	static const uint8_t address[4] = { 192, 0, 2, 1 };
	static const uint16_t port = 18600;
	struct nlattr *nest = mnl_attr_nest_start(nlh, KRP_GENL_A_NODE_SERVER);

	krc_put(nlh, c, true, KRP_GENL_A_SERVER_ADDRESS, address, sizeof(address));
	krc_put(nlh, c, true, KRP_GENL_A_SERVER_PORT, &port, sizeof(port));
	krc_put(nlh, c, true, KRP_GENL_A_SERVER_NAME, "ms1", 4);
	if (c && c->nest && c->type > KRP_GENL_A_SERVER_NAME)
		mnl_attr_put(nlh, c->type, (size_t)c->bytes, c->data);
	mnl_attr_nest_end(nlh, nest);
}

/* Attributes that a good request does not have. */
static bool krc_extra(const struct krc_case *c)
{
	switch (c->type) {
	case KRP_GENL_A_NODE_UP:
	case KRP_GENL_A_NODE_AUTH:
	case KRP_GENL_A_NODE_KEY:
	case KRP_GENL_A_NODE_DEVICE:
	case KRP_GENL_A_NODE_LEASE_MS:
	case KRP_GENL_A_NODE_POOL_INITIATORS:
	case KRP_GENL_A_NODE_QUEUES_PER_USER:
	case KRP_GENL_A_NODE_REQUESTS_PER_USER:
	case KRP_GENL_A_NODE_MRS_PER_USER:
	case KRP_GENL_A_NODE_TRAFFIC_CLASS:
	case KRP_GENL_A_NODE_SERVICE_LEVEL:
	case KRP_GENL_A_NODE_MTU:
	case KRP_GENL_A_NODE_MAX + 1:
		return !c->nest;
	default:
		return false;
	}
}

static struct nlmsghdr *krc_node_up(struct mc_genl *genl, const struct krc_case *c)
{
	struct nlmsghdr *nlh = mc_genl_request(genl, KRP_GENL_CMD_NODE_UP, 0);
	unsigned int i;

	krc_put(nlh, c, false, KRP_GENL_A_NODE_OWNER, ones, 16);
	krc_put(nlh, c, false, KRP_GENL_A_NODE_GENERATION, &krc_generation, sizeof(krc_generation));
	krc_put(nlh, c, false, KRP_GENL_A_NODE_NAME, "node", 5);
	krc_put_u32(nlh, c, KRP_GENL_A_NODE_TIMEOUT_MS, 5000);
	krc_put_u32(nlh, c, KRP_GENL_A_NODE_RECONNECT_MIN_MS, 200);
	krc_put_u32(nlh, c, KRP_GENL_A_NODE_RECONNECT_MAX_MS, 10000);
	krc_put_u32(nlh, c, KRP_GENL_A_NODE_POOL_DEPTH, 64);
	krc_put_u32(nlh, c, KRP_GENL_A_NODE_ACK_TIMEOUT, 10);
	krc_put_u32(nlh, c, KRP_GENL_A_NODE_MARGIN_MS, 300);
	krc_put_u32(nlh, c, KRP_GENL_A_NODE_CACHE_ENTRIES, 64);
	krc_put_u32(nlh, c, KRP_GENL_A_NODE_PKEY, 0xffff);
	if (c && krc_extra(c))
		mnl_attr_put(nlh, c->type, (size_t)c->bytes, c->data);
	for (i = 0; i < (c ? c->servers : 1); i++)
		krc_put_server(nlh, c);
	return nlh;
}

static int krc_bad(struct mc_genl *genl)
{
	int wrong = 0, err;
	size_t i;

	for (i = 0; i < sizeof(krc_cases) / sizeof(krc_cases[0]); i++) {
		const struct krc_case *c = &krc_cases[i];

		krc_node_up(genl, c);
		err = mc_genl_run(genl, NULL, NULL);
		if (err == c->error && strstr(mc_genl_error(genl), c->text))
			continue;
		printf("%s: %d '%s', wanted %d '%s'\n", c->name, err, mc_genl_error(genl), c->error,
		       c->text);
		wrong++;
	}
	printf("%zu requests, %d wrong\n", i, wrong);
	return wrong;
}

static int krc_denied(struct mc_genl *genl)
{
	int up, down;

	krc_node_up(genl, NULL);
	up = mc_genl_run(genl, NULL, NULL);
	mc_genl_request(genl, KRP_GENL_CMD_NODE_DOWN, 0);
	down = mc_genl_run(genl, NULL, NULL);
	printf("up %d, down %d\n", up, down);
	return up != -EPERM || down != -EPERM;
}

/* Bytes after the two headers are changed at random, lengths of attributes too. */
static int krc_random(struct mc_genl *genl, unsigned int seed, unsigned int nr)
{
	unsigned int i, faults, taken = 0, head = NLMSG_HDRLEN + 4;
	struct nlmsghdr *nlh;
	char *bytes;
	int err;

	for (i = 0; i < nr; i++) {
		nlh = krc_node_up(genl, NULL);
		if (rand_r(&seed) % 4 == 0)
			nlh = mc_genl_request(genl, (uint8_t)(rand_r(&seed) % 16),
					      rand_r(&seed) % 2 ? NLM_F_DUMP : 0);
		bytes = (char *)nlh;
		for (faults = (unsigned int)rand_r(&seed) % 4 + 1; faults && nlh->nlmsg_len > head;
		     faults--)
			bytes[head + (unsigned int)rand_r(&seed) % (nlh->nlmsg_len - head)] =
				(char)rand_r(&seed);
		err = mc_genl_run(genl, NULL, NULL);
		taken += !err;
	}
	printf("%u requests, %u taken\n", nr, taken);
	return 0;
}

static int krc_run_up(void *arg)
{
	krc_node_up(arg, NULL);
	return mc_genl_run(arg, NULL, NULL);
}

static int krc_run_down(void *arg)
{
	mc_genl_request(arg, KRP_GENL_CMD_NODE_DOWN, 0);
	return mc_genl_run(arg, NULL, NULL);
}

/* As krcore-metactl has it: none before it is newer. */
static void krc_generation_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	krc_generation = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void krc_on_port(void *arg, const struct nlmsghdr *nlh)
{
	const struct nlattr *attr;
	unsigned int *up = arg;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == KRP_GENL_A_PORT_STATE &&
		    mnl_attr_get_u8(attr) == KRP_GENL_PORT_UP)
			(*up)++;
}

/* Wait until a port is up. Return: how often one had to look, or 0 if none comes. */
static unsigned int krc_port_comes(struct mc_genl *genl)
{
	unsigned int looks, up = 0;

	for (looks = 1; looks <= KRC_PORT_LOOKS; looks++) {
		mc_genl_request(genl, KRP_GENL_CMD_PORT_GET, NLM_F_DUMP);
		if (!mc_genl_run(genl, krc_on_port, &up) && up)
			return looks;
		usleep(KRC_PORT_LOOK_US);
	}
	return 0;
}

/*
 * Bring the node up with one allocation failing, for each @step-th of them from @first on. If it
 * comes up all the same, so does a port, by itself.
 */
static int krc_lack(struct mc_genl *genl, unsigned int first, unsigned int step)
{
	unsigned int nth, left = 0, refused = 0, whole = 0, lacked = 0, looks;
	int err;

	for (nth = first;; nth += step) {
		krc_run_down(genl);
		krc_generation_now();
		err = fail_nth_once(krc_run_up, genl, nth, &left);
		if (left)
			break;
		if (err == -ENOMEM || err == -ENOBUFS || err == -EFAULT) {
			refused++;
			continue;
		}
		looks = err ? 0 : krc_port_comes(genl);
		if (!looks) {
			printf("allocation %u fails: %s\n", nth,
			       err ? strerror(-err) : "no port comes");
			return 1;
		}
		if (looks > 1)
			lacked++;
		else
			whole++;
	}
	printf("%u to %u by %u: %u times no node, %u times no port at first, %u times both\n",
	       first, nth, step, refused, lacked, whole);
	return err ? 1 : 0;
}

/*
 * A node that could not come up is down, and comes up with the next request. What takes it down is
 * in works, whose allocations tests/cluster/test_faults.py has fail.
 */
static int krc_faults(struct mc_genl *genl, unsigned int first, unsigned int every)
{
	struct fail_nth_step steps[] = {
		{ .name = "up",
		  .run = krc_run_up,
		  .undo = krc_run_down,
		  .undo_failed = krc_run_down },
		{ .name = "up again",
		  .prepare = krc_run_up,
		  .run = krc_run_up,
		  .undo = krc_run_down,
		  .undo_failed = krc_run_down },
	};
	struct fail_nth_count c = { 0 };
	int err, ret = 0;
	size_t i;

	krc_generation_now();

	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		steps[i].first = first;
		steps[i].every = every;
		err = fail_nth_sweep(&steps[i], genl, &c);
		printf("%s: %u allocations, %u failed, %u did without, %u wrong%s\n", steps[i].name,
		       c.allocations, c.failed, c.went_on, c.wrong, err ? ": BAD" : "");
		ret |= err;
	}
	return ret;
}

int main(int argc, char **argv)
{
	struct mc_genl *genl;
	int err;

	memset(long_name, 'x', sizeof(long_name) - 1);
	err = mc_genl_open(&genl);
	if (err) {
		fprintf(stderr, "krc_genl: %s\n", strerror(-err));
		return 2;
	}
	if (argc == 2 && !strcmp(argv[1], "bad"))
		err = krc_bad(genl);
	else if (argc == 2 && !strcmp(argv[1], "denied"))
		err = krc_denied(genl);
	else if (argc == 4 && !strcmp(argv[1], "faults") && atoi(argv[2]) > 0 && atoi(argv[3]) > 0)
		err = krc_faults(genl, (unsigned int)atoi(argv[2]), (unsigned int)atoi(argv[3]));
	else if (argc == 4 && !strcmp(argv[1], "lack") && atoi(argv[2]) > 0 && atoi(argv[3]) > 0)
		err = krc_lack(genl, (unsigned int)atoi(argv[2]), (unsigned int)atoi(argv[3]));
	else if (argc == 4 && !strcmp(argv[1], "random"))
		err = krc_random(genl, (unsigned int)atoi(argv[2]), (unsigned int)atoi(argv[3]));
	else
		err = 2;
	mc_genl_close(genl);
	return err ? 1 : 0;
}
