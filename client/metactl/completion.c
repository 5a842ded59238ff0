// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The tables of the bash completion, from the command table. The build puts
 * them before completion.bash, which explains how they are read.
 */
#include "client/metactl/metactl.h"

static const char mc_kinds[] = {
	[MC_FLAG] = 'F', [MC_NUMBER] = 'N', [MC_GID] = 'G',
	[MC_TEXT] = 'T', [MC_FILE] = 'P',   [MC_HEX] = 'H',
};

static void mc_print_params(FILE *file, const struct mc_object *object, const struct mc_command *c)
{
	const struct mc_param *p;

	fprintf(file, "\t[\"%s %s\"]=\"", object->name, c->name);
	for (p = c->params; p && p->type != MC_NONE; p++)
		fprintf(file, "%s%s%s/%c", p == c->params ? "" : " ",
			p->flags & MC_POSITIONAL ? "@" : "", p->name, mc_kinds[p->type]);
	fputs("\"\n", file);
}

void mc_print_completion(FILE *file)
{
	const struct mc_object *const *objects = mc_objects();
	const struct mc_command *c;
	unsigned int i;

	fputs("# SPDX-License-Identifier: GPL-2.0-only OR MIT\n"
	      "# bash completion for krcore-metactl(8): tables made from its command table\n"
	      "# shellcheck shell=bash\n",
	      file);
	fputs("_krcore_metactl_objects=\"", file);
	for (i = 0; objects[i]; i++)
		fprintf(file, "%s%s", i ? " " : "", objects[i]->name);
	fputs("\"\n_krcore_metactl_options=\"", file);
	mc_print_options(file);
	fputs("\"\ndeclare -gA _krcore_metactl_commands=(\n", file);
	for (i = 0; objects[i]; i++) {
		fprintf(file, "\t[%s]=\"", objects[i]->name);
		for (c = objects[i]->commands; c->name; c++)
			fprintf(file, "%s%s", c == objects[i]->commands ? "" : " ", c->name);
		fputs("\"\n", file);
	}
	fputs(")\ndeclare -gA _krcore_metactl_params=(\n", file);
	for (i = 0; objects[i]; i++)
		for (c = objects[i]->commands; c->name; c++)
			mc_print_params(file, objects[i], c);
	fputs(")\n", file);
}
