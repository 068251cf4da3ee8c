/* ask.c: one query, put in every way there is; and names for what must not be printed as it is. */
#include "queries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES = 256, ROOM = 1 << 16, TAIL = 8 };

static struct {
	const void *handle;
	const char *name;
} names[NAMES];

void name_add(const void *handle, const char *name)
{
	name_remove(handle);
	for (size_t i = 0; i < NAMES; i++) {
		if (names[i].handle == NULL) {
			names[i].handle = handle;
			names[i].name = name;
			return;
		}
	}
	fail("more than %d handles have names", NAMES);
}

void name_remove(const void *handle)
{
	for (size_t i = 0; i < NAMES; i++)
		if (names[i].handle == handle)
			names[i].handle = NULL;
}

const char *name_of(const void *handle)
{
	if (handle == NULL)
		return "NULL";
	for (size_t i = 0; i < NAMES; i++)
		if (names[i].handle == handle)
			return names[i].name;
	return "other";
}

/* The number in the item-th part of value; parts have 4 or 8 bytes. */
static unsigned long long number(const unsigned char *value, size_t bytes, size_t item)
{
	if (bytes == sizeof(cl_uint)) {
		cl_uint small;
		memcpy(&small, value + item * bytes, bytes);
		return small;
	}
	cl_ulong large;
	memcpy(&large, value + item * sizeof large, sizeof large);
	return large;
}

static void print_list(const struct query *query, const unsigned char *value, size_t size)
{
	size_t bytes = size % 8 == 0 ? 8 : 4;
	for (size_t i = 0; i < size / bytes; i++) {
		unsigned long long it = number(value, bytes, i);
		if (query->answer == ANSWER_HANDLES)
			printf(" %s", name_of((const void *)(uintptr_t)it));
		else
			printf(query->answer == ANSWER_HEX ? " 0x%llx" : " %llu", it);
	}
}

static void print_answer(const struct query *query, const unsigned char *value, size_t size)
{
	printf(" =");
	switch (query->answer) {
	case ANSWER_TEXT:
		printf(" \"%.*s\"", (int)size, (const char *)value);
		return;
	case ANSWER_BYTES:
		for (size_t i = 0; i < size; i++)
			printf(" %02x", value[i]);
		return;
	case ANSWER_PRESENT:
		printf(size > 0 ? " there" : " nothing");
		return;
	case ANSWER_NUMBER:
	case ANSWER_HEX:
	case ANSWER_HANDLES:
		print_list(query, value, size);
		return;
	}
}

/* Whether all of value from size on is still what it was filled with. */
static bool kept(const unsigned char *value, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (value[i] != 0xa5)
			return false;
	return true;
}

/* Queries with room for bytes; prints the status, and whether the driver wrote past the end. */
static void ask_with_room(const struct object *object, const struct query *query, size_t room)
{
	static unsigned char value[ROOM + TAIL];
	memset(value, 0xa5, room + TAIL);
	size_t needed = 0;
	cl_int code = object->get(object->handle, object->second, query->key, room, value, &needed);
	printf(" %d%s", code, kept(value, code == CL_SUCCESS ? needed : 0, room + TAIL) ? "" : "!");
}

static void ask_one(const struct object *object, const struct query *query)
{
	static unsigned char value[ROOM];
	size_t needed = 0, again = 0;
	cl_int code = object->get(object->handle, object->second, query->key, 0, NULL, &needed);
	printf("%s: %s: %d", object->label, query->name, code);
	if (code == CL_SUCCESS && needed <= ROOM - TAIL) {
		code = object->get(object->handle, object->second, query->key, needed, value, &again);
		if (query->answer != ANSWER_PRESENT)
			printf(", %zu bytes", needed);
		printf("%s", again == needed ? "" : ", then another size");
		if (code == CL_SUCCESS)
			print_answer(query, value, needed);
		else
			printf(", then %d", code);
		/* Asked for nothing; not for the size; with one byte too few; with none; with more than is needed. */
		printf(" | %d", object->get(object->handle, object->second, query->key, 0, NULL, NULL));
		printf(" %d", object->get(object->handle, object->second, query->key, needed, value, NULL));
		ask_with_room(object, query, needed > 0 ? needed - 1 : 0);
		ask_with_room(object, query, 0);
		ask_with_room(object, query, needed + TAIL);
	}
	printf("\n");
}

void ask_all(const struct object *object, const struct query *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ask_one(object, &list[i]);
	const struct query unknown[] = {{"unknown 0", 0, ANSWER_BYTES}, {"unknown 0x7fff", 0x7fff, ANSWER_BYTES}};
	for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
		ask_one(object, &unknown[i]);
}

#define ERROR(name)                                                                                                    \
	case name:                                                                                                     \
		return #name

const char *error_name(cl_int code)
{
	switch (code) {
		ERROR(CL_SUCCESS);
		ERROR(CL_MEM_OBJECT_ALLOCATION_FAILURE);
		ERROR(CL_OUT_OF_RESOURCES);
		ERROR(CL_OUT_OF_HOST_MEMORY);
		ERROR(CL_MEM_COPY_OVERLAP);
		ERROR(CL_IMAGE_FORMAT_NOT_SUPPORTED);
		ERROR(CL_MISALIGNED_SUB_BUFFER_OFFSET);
		ERROR(CL_INVALID_VALUE);
		ERROR(CL_INVALID_CONTEXT);
		ERROR(CL_INVALID_COMMAND_QUEUE);
		ERROR(CL_INVALID_HOST_PTR);
		ERROR(CL_INVALID_MEM_OBJECT);
		ERROR(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
		ERROR(CL_INVALID_IMAGE_DESCRIPTOR);
		ERROR(CL_INVALID_IMAGE_SIZE);
		ERROR(CL_INVALID_KERNEL);
		ERROR(CL_INVALID_ARG_INDEX);
		ERROR(CL_INVALID_ARG_VALUE);
		ERROR(CL_INVALID_ARG_SIZE);
		ERROR(CL_INVALID_KERNEL_ARGS);
		ERROR(CL_INVALID_WORK_DIMENSION);
		ERROR(CL_INVALID_GLOBAL_WORK_SIZE);
		ERROR(CL_INVALID_EVENT_WAIT_LIST);
		ERROR(CL_INVALID_EVENT);
		ERROR(CL_INVALID_OPERATION);
		ERROR(CL_INVALID_BUFFER_SIZE);
		ERROR(CL_INVALID_PROPERTY);
		ERROR(CL_INVALID_DEVICE);
	default:
		return "?";
	}
}

void print_error(const char *label, const char *function, const char *what, cl_int code)
{
	printf("refused: %s: %s: %s: %d %s\n", label, function, what, code, error_name(code));
}
