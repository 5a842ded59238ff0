/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a connection calls, of librdmacm, of libibverbs and of the server, as the linker
 * redirects it to a test, with --wrap of each.
 */
#ifndef KRC_TESTS_UNIT_WRAP_CONN_H
#define KRC_TESTS_UNIT_WRAP_CONN_H

#include "metaserver/server_priv.h"

int __wrap_rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask);
int __wrap_rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param);
int __wrap_rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t bytes);
int __wrap_rdma_disconnect(struct rdma_cm_id *id);
int __wrap_rdma_destroy_id(struct rdma_cm_id *id);
struct ibv_qp *__wrap_ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
int __wrap_ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int __wrap_ibv_destroy_qp(struct ibv_qp *qp);
int __wrap_ibv_query_gid(struct ibv_context *verbs, uint8_t port, int index, union ibv_gid *gid);
int __wrap_ibv_query_pkey(struct ibv_context *verbs, uint8_t port, int index, __be16 *pkey);
int __wrap_ibv_query_device(struct ibv_context *verbs, struct ibv_device_attr *attr);
struct ibv_pd *__wrap_ibv_alloc_pd(struct ibv_context *verbs);
int __wrap_ms_device_post(struct ms_conn *conn, const void *msg, unsigned int bytes, bool notify);
void __wrap_ms_device_poll(struct ms_device *dev);
void __real_ms_device_poll(struct ms_device *dev);
void __wrap_ms_device_beat(struct ms_server *srv);
void __wrap_ms_watch_probe(struct ms_server *srv);
void __wrap_ms_log(int priority, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int __real_ms_device_get(struct ms_server *srv, struct rdma_cm_id *id, struct ms_device **ret_dev);
int __wrap_ms_device_get(struct ms_server *srv, struct rdma_cm_id *id, struct ms_device **ret_dev);
int __wrap_ms_watch_add(struct ms_server *srv, struct rdma_cm_id *id);

#endif
