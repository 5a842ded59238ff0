// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Owns: the trace file. A line is "<guest time in us> <class> <text>".
 * Runs under QEMU's big lock like the whole model.
 */
#include "dev.h"
#include "qapi/error.h"

#define CX_TRACE_DEFAULT "cmd+refuse+event"

static const char *const cx_trace_names[] = {
	"cmd", "wqe", "cqe", "pkt", "eth", "event", "refuse", "db", "fault",
};

static int cx_trace_parse(const char *classes, u32 *ret_mask, Error **errp)
{
	g_auto(GStrv) word = g_strsplit(classes, "+", 0);
	u32 mask = 0, i, k;

	for (i = 0; word[i]; i++) {
		if (!strcmp(word[i], "all")) {
			mask = ~0u;
			continue;
		}
		for (k = 0; k < ARRAY_SIZE(cx_trace_names); k++) {
			if (!strcmp(word[i], cx_trace_names[k]))
				break;
		}
		if (k == ARRAY_SIZE(cx_trace_names)) {
			error_setg(errp, "trace_classes: unknown class '%s'", word[i]);
			return -EINVAL;
		}
		mask |= 1u << k;
	}
	*ret_mask = mask;
	return 0;
}

int cx_trace_open(struct cx_dev *dev, const char *path, const char *classes, Error **errp)
{
	int err;

	if (!path)
		return 0;
	err = cx_trace_parse(classes ? classes : CX_TRACE_DEFAULT, &dev->trace.classes, errp);
	if (err)
		return err;
	dev->trace.file = fopen(path, "w");
	if (!dev->trace.file) {
		error_setg_errno(errp, errno, "trace: cannot open '%s'", path);
		return -EIO;
	}
	setvbuf(dev->trace.file, NULL, _IOLBF, 0);
	return 0;
}

void cx_trace_close(struct cx_dev *dev)
{
	if (dev->trace.file)
		fclose(dev->trace.file);
	dev->trace.file = NULL;
}

bool cx_trace_on(const struct cx_dev *dev, enum cx_trace_class class)
{
	return dev->trace.file && dev->trace.classes & class;
}

void cx_trace(struct cx_dev *dev, enum cx_trace_class class, const char *fmt, ...)
{
	va_list ap;

	if (!cx_trace_on(dev, class))
		return;
	fprintf(dev->trace.file, "%" PRId64 " %s ", qemu_clock_get_us(QEMU_CLOCK_VIRTUAL),
		cx_trace_names[ctz32(class)]);
	va_start(ap, fmt);
	vfprintf(dev->trace.file, fmt, ap);
	va_end(ap);
	fputc('\n', dev->trace.file);
}
