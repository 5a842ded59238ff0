// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * From words to an object, its command and the values of its parameters.
 *
 * Grammar after iproute2: OBJECT COMMAND, then positional values, then words
 * with or without a value; each word may be shortened while it is unique.
 * Nothing is guessed: what is unknown, given twice or out of range is refused.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "client/metactl/metactl.h"
#include "common/gid.h"

#define MC_AMBIGUOUS (-2)
#define MC_UNKNOWN (-1)

const struct mc_value *mc_get(const struct mc *mc, const char *name)
{
	const struct mc_param *p = mc->command->params;
	unsigned int i;

	for (i = 0; p && p[i].type != MC_NONE; i++)
		if (!strcmp(p[i].name, name))
			return mc->values[i].set ? &mc->values[i] : NULL;
	return NULL;
}

uint64_t mc_number(const struct mc *mc, const char *name, uint64_t none)
{
	const struct mc_value *value = mc_get(mc, name);

	return value ? value->number : none;
}

const char *mc_text(const struct mc *mc, const char *name)
{
	const struct mc_value *value = mc_get(mc, name);

	return value ? value->text : NULL;
}

/* @best: what earlier words of the table made of it; an exact match ends the search. */
static int mc_match(const char *word, const char *name, int index, int best)
{
	if (strncmp(word, name, strlen(word)) != 0)
		return best;
	return best == MC_UNKNOWN ? index : MC_AMBIGUOUS;
}

static int mc_find_object(const char *word)
{
	const struct mc_object *const *objects = mc_objects();
	int i, found = MC_UNKNOWN;

	for (i = 0; *word && objects[i]; i++) {
		if (!strcmp(word, objects[i]->name))
			return i;
		found = mc_match(word, objects[i]->name, i, found);
	}
	return found;
}

static int mc_find_command(const struct mc_object *object, const char *word)
{
	int i, found = MC_UNKNOWN;

	for (i = 0; *word && object->commands[i].name; i++) {
		if (!strcmp(word, object->commands[i].name))
			return i;
		found = mc_match(word, object->commands[i].name, i, found);
	}
	return found;
}

static int mc_find_param(const struct mc_param *params, const char *word)
{
	int i, found = MC_UNKNOWN;

	if (!strncmp(word, "--", 2)) /* as an option is written elsewhere */
		word += 2;
	for (i = 0; *word && params && params[i].type != MC_NONE; i++) {
		if (params[i].flags & MC_POSITIONAL)
			continue;
		if (!strcmp(word, params[i].name))
			return i;
		found = mc_match(word, params[i].name, i, found);
	}
	return found;
}

static int mc_bad(struct mc *mc, const char *what, const char *word, int found)
{
	const char *why = found == MC_AMBIGUOUS ? "ambiguous" : "unknown";

	mc_error(mc, "%s %s '%s'; see krcore-metactl %s%shelp", why, what, word,
		 mc->object ? mc->object->name : "", mc->object ? " " : "");
	return MC_USAGE;
}

static int mc_take_number(struct mc *mc, const struct mc_param *p, struct mc_value *value)
{
	char *end;

	errno = 0;
	value->number = strtoull(value->text, &end, 0);
	if (!isdigit((unsigned char)value->text[0]) || *end || errno || value->number < p->min ||
	    value->number > p->max) {
		mc_error(mc, "%s '%s' is no number from %" PRIu64 " to %" PRIu64, p->name,
			 value->text, p->min, p->max);
		return MC_USAGE;
	}
	return MC_OK;
}

static int mc_take_gid(struct mc *mc, const struct mc_param *p, struct mc_value *value)
{
	char text[NI_MAXHOST];
	struct addrinfo *ai;
	int ret;

	value->bytes_nr = KRCORE_GID_BYTES;
	if (!kru_gid_parse(value->text, value->bytes))
		return MC_OK;
	if (!isalnum((unsigned char)value->text[0]) || strchr(value->text, ':') ||
	    kru_v4_is_broken(value->text)) {
		mc_error(mc, "%s '%s' is neither a GID, nor an address, nor a host name", p->name,
			 value->text);
		return MC_USAGE;
	}
	ret = getaddrinfo(value->text, NULL, &(struct addrinfo){ .ai_socktype = SOCK_STREAM }, &ai);
	if (ret) {
		mc_error(mc, "%s '%s' is no GID, and as a host name: %s", p->name, value->text,
			 gai_strerror(ret));
		return MC_USAGE;
	}
	ret = getnameinfo(ai->ai_addr, ai->ai_addrlen, text, sizeof(text), NULL, 0, NI_NUMERICHOST);
	freeaddrinfo(ai);
	if (!ret) {
		text[strcspn(text, "%")] = '\0';
		if (!kru_gid_parse(text, value->bytes))
			return MC_OK;
	}
	mc_error(mc, "%s '%s' has an address that makes no GID", p->name, value->text);
	return MC_USAGE;
}

static int mc_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int mc_take_hex(struct mc *mc, const struct mc_param *p, struct mc_value *value)
{
	const char *at = value->text;
	int high, low;

	value->bytes_nr = 0;
	while (*at) {
		at += *at == ':' && value->bytes_nr; /* between two bytes */
		high = mc_digit(at[0]);
		low = high < 0 ? -1 : mc_digit(at[1]);
		if (low < 0 || value->bytes_nr == p->max || value->bytes_nr == MC_BYTES_MAX)
			break;
		value->bytes[value->bytes_nr++] = (uint8_t)(high << 4 | low);
		at += 2;
	}
	if (*at || value->bytes_nr < p->min) {
		mc_error(mc,
			 "%s '%s' is not %" PRIu64 " to %" PRIu64 " bytes of hexadecimal digits",
			 p->name, value->text, p->min, p->max);
		return MC_USAGE;
	}
	return MC_OK;
}

static int mc_take(struct mc *mc, int index, const char *text)
{
	const struct mc_param *p = &mc->command->params[index];
	struct mc_value *value = &mc->values[index];

	if (value->set) {
		mc_error(mc, "'%s' is given twice", p->name);
		return MC_USAGE;
	}
	value->set = true;
	value->text = text;
	switch (p->type) {
	case MC_NUMBER:
		return mc_take_number(mc, p, value);
	case MC_GID:
		return mc_take_gid(mc, p, value);
	case MC_HEX:
		return mc_take_hex(mc, p, value);
	case MC_TEXT:
	case MC_FILE:
		if (*text)
			return MC_OK;
		mc_error(mc, "%s is empty", p->name);
		return MC_USAGE;
	case MC_FLAG:
	case MC_NONE:
		break;
	}
	return MC_OK;
}

static int mc_next_positional(const struct mc *mc)
{
	const struct mc_param *p = mc->command->params;
	int i;

	for (i = 0; p && p[i].type != MC_NONE; i++)
		if ((p[i].flags & MC_POSITIONAL) && !mc->values[i].set)
			return i;
	return MC_UNKNOWN;
}

/* Take what argv[*i] begins; moves *i to its last word. */
static int mc_parse_param(struct mc *mc, int argc, char **argv, int *i)
{
	const struct mc_param *p = mc->command->params;
	int next = mc_next_positional(mc);
	int index = mc_find_param(p, argv[*i]);

	if (next >= 0 && ((p[next].flags & MC_REQUIRED) || index == MC_UNKNOWN))
		return mc_take(mc, next, argv[*i]);
	if (index < 0)
		return mc_bad(mc, "word", argv[*i], index);
	if (p[index].type == MC_FLAG)
		return mc_take(mc, index, argv[*i]);
	if (++*i < argc)
		return mc_take(mc, index, argv[*i]);
	mc_error(mc, "'%s' needs a value", p[index].name);
	return MC_USAGE;
}

static int mc_parse_params(struct mc *mc, int argc, char **argv)
{
	const struct mc_param *p = mc->command->params;
	int i, ret;

	for (i = 0; i < argc; i++) {
		ret = mc_parse_param(mc, argc, argv, &i);
		if (ret)
			return ret;
	}
	for (i = 0; p && p[i].type != MC_NONE; i++)
		if ((p[i].flags & MC_REQUIRED) && !mc->values[i].set) {
			mc_error(mc, "%s%s is missing; see krcore-metactl %s help", p[i].name,
				 p[i].flags & MC_POSITIONAL ? "" : " with its value",
				 mc->object->name);
			return MC_USAGE;
		}
	return MC_OK;
}

int mc_parse(struct mc *mc, int argc, char **argv)
{
	int index = 0;

	mc->object = NULL;
	if (argc) {
		if (!strcmp(argv[0], "help"))
			return MC_HELP;
		index = mc_find_object(argv[0]);
		if (index < 0)
			return mc_bad(mc, "object", argv[0], index);
		argc--;
		argv++;
	}
	mc->object = mc_objects()[index];
	mc->command = mc->object->commands;
	if (argc && !strcmp(argv[0], "help"))
		return MC_HELP;
	if (argc && *mc->command->name) {
		index = mc_find_command(mc->object, argv[0]);
		if (index < 0)
			return mc_bad(mc, "command", argv[0], index);
		mc->command = &mc->object->commands[index];
		argc--;
		argv++;
		if (argc && !strcmp(argv[0], "help"))
			return MC_HELP;
	}
	return mc_parse_params(mc, argc, argv);
}
