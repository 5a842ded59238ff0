/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owns: the format of log lines about a port: "krcore: mlx5_0/1: ...", device and port number
 * as in `krcore-metactl node show`. Files that use it define pr_fmt().
 */
#ifndef KRC_LOG_H
#define KRC_LOG_H

#include <linux/printk.h>
#include <rdma/ib_verbs.h>

/**
 * krc_log_device() - Name of a device for the log.
 * @ibdev: device, or NULL, as ports of tests have.
 *
 * Context: any.
 * Return: the name, "none" for NULL.
 */
static inline const char *krc_log_device(const struct ib_device *ibdev)
{
	return ibdev ? dev_name(&ibdev->dev) : "none";
}

/**
 * krc_port_err() - Log a line about a port; likewise warn, notice, info and the ratelimited ones.
 * @ibdev: its device, or NULL.
 * @num: its number, from 1.
 * @fmt: printf() format of the rest, and its arguments.
 */
#define krc_port_err(ibdev, num, fmt, ...) \
	pr_err("%s/%u: " fmt, krc_log_device(ibdev), num, ##__VA_ARGS__)
#define krc_port_warn(ibdev, num, fmt, ...) \
	pr_warn("%s/%u: " fmt, krc_log_device(ibdev), num, ##__VA_ARGS__)
#define krc_port_notice(ibdev, num, fmt, ...) \
	pr_notice("%s/%u: " fmt, krc_log_device(ibdev), num, ##__VA_ARGS__)
#define krc_port_info(ibdev, num, fmt, ...) \
	pr_info("%s/%u: " fmt, krc_log_device(ibdev), num, ##__VA_ARGS__)
#define krc_port_err_limited(ibdev, num, fmt, ...) \
	pr_err_ratelimited("%s/%u: " fmt, krc_log_device(ibdev), num, ##__VA_ARGS__)
#define krc_port_warn_limited(ibdev, num, fmt, ...) \
	pr_warn_ratelimited("%s/%u: " fmt, krc_log_device(ibdev), num, ##__VA_ARGS__)
#define krc_port_info_limited(ibdev, num, fmt, ...) \
	pr_info_ratelimited("%s/%u: " fmt, krc_log_device(ibdev), num, ##__VA_ARGS__)

#endif /* KRC_LOG_H */
