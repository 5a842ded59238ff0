/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What krcore-example-rpc-client and -server agree on. A call is a message whose bytes are a name; its
 * number is in the message's immediate, below EX_RPC_NONE. The reply has the same number.
 */
#ifndef EX_RPC_H
#define EX_RPC_H

#include "example.h"

#define EX_RPC_NONE 0x80000000U /* in the number of a reply: nothing has that name */

#endif /* EX_RPC_H */
