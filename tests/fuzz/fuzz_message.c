// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Control messages as received: krp_msg_check() on any bytes, both ways.
 *
 * What it accepts must be as krp_msg.h says: of the length of its type, zero
 * in every pad, in the right direction; and no accepted message stays accepted
 * when a byte of its header's pads is set or a byte is missing.
 */
#include "proto/krp_msg.h"
#include "tests/fuzz/fuzz.h"

static int fz_client_type(unsigned int type)
{
	return type == KRP_MSG_HELLO || type == KRP_MSG_AUTH ||
	       (type >= KRP_MSG_PUBLISH && type <= KRP_MSG_LOOKUP);
}

static void fz_check_accepted(__u8 *msg, unsigned int bytes, int from_client)
{
	static const size_t pads[] = { offsetof(struct krp_msg_hdr, rsvd),
				       offsetof(struct krp_msg_hdr, rsvd) + 1,
				       offsetof(struct krp_msg_hdr, rsvd2),
				       offsetof(struct krp_msg_hdr, rsvd2) + 7 };
	const struct krp_msg_hdr *hdr = (const struct krp_msg_hdr *)msg;
	unsigned int i, other;

	FZ_ASSERT(hdr->type > 0 && hdr->type < KRP_MSG_TYPES);
	FZ_ASSERT(bytes == krp_msg_bytes(hdr->type) && bytes <= KRP_MSG_BYTES_MAX);
	FZ_ASSERT(krp_le16_to_cpu(hdr->status) < KRP_ST_CODES);
	FZ_ASSERT(fz_client_type(hdr->type) == from_client);
	if (from_client)
		FZ_ASSERT(!hdr->status && !hdr->incarnation);
	if (hdr->type == KRP_MSG_PUBLISH && from_client) {
		const struct krp_publish *m = (const struct krp_publish *)msg;

		FZ_ASSERT(m->value.generation && m->value.len <= KRP_RAW_BYTES);
		FZ_ASSERT(m->value.kind >= KRP_KIND_DCT && m->value.kind <= KRP_KIND_LANE);
	}
	if (hdr->type == KRP_MSG_HELLO)
		FZ_ASSERT(!((const struct krp_hello *)msg)->name[KRP_NAME_BYTES - 1]);

	/* what says that it is of another version is not judged further, but for what all share */
	other = hdr->version == KRP_MSG_VERSION ? KRP_ST_MALFORMED : KRP_ST_VERSION;
	FZ_ASSERT(krp_msg_check(msg, bytes - 1, from_client) ==
		  (from_client ? other : KRP_ST_MALFORMED));
	FZ_ASSERT(krp_msg_check(msg, bytes, !from_client) == other);
	for (i = 0; i < sizeof(pads) / sizeof(*pads); i++) {
		msg[pads[i]] ^= 0x80;
		FZ_ASSERT(krp_msg_check(msg, bytes, from_client) == KRP_ST_MALFORMED);
		msg[pads[i]] ^= 0x80;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned int status;
	int from_client;
	__u8 *msg;

	if (size > 4 * KRP_MSG_BYTES_MAX)
		return 0;
	msg = fz_copy(data, size);
	for (from_client = 0; from_client < 2; from_client++) {
		status = krp_msg_check(msg, (unsigned int)size, from_client);
		FZ_ASSERT(status == KRP_ST_OK || status == KRP_ST_VERSION ||
			  status == KRP_ST_MALFORMED);
		if (status == KRP_ST_OK)
			fz_check_accepted(msg, (unsigned int)size, from_client);
	}
	if (size >= 2) {
		FZ_ASSERT(*krp_msg_name(data[0]) && *krp_status_text(data[1]));
		FZ_ASSERT(krp_status_errno(data[1]) <= 0);
		FZ_ASSERT(!krp_status_errno(data[1]) == (data[1] == KRP_ST_OK));
	}
	free(msg);
	return 0;
}
