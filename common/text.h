/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Text that came from elsewhere, or was cut somewhere, made fit for a terminal
 * and for JSON.
 */
#ifndef KRU_TEXT_H
#define KRU_TEXT_H

#include <stddef.h>

/**
 * kru_text_safe() - Make foreign bytes fit to be shown.
 * @text: any bytes.
 * @bytes: how many.
 *
 * Control characters and bytes that are not UTF-8 become \xNN, so that foreign
 * text cannot reach a terminal as commands.
 *
 * Return: memory for free(), or NULL without memory.
 */
char *kru_text_safe(const void *text, size_t bytes);

#endif /* KRU_TEXT_H */
