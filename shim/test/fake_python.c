/* fake_python.c: see fake_python.h. */
#include "fake_python.h"

#include <stdlib.h>
#include <string.h>

struct fake_python fake_python;
unsigned long Py_Version = 0x030b02f0;

static void demand(bool held)
{
	if (!held)
		abort();
}

#define FAKE(type, name, arguments)      \
	GMT_HOOK type name arguments;    \
	GMT_HOOK type name arguments

FAKE(void *, PyGILState_GetThisThreadState, (void))
{
	return fake_python.mine;
}

FAKE(void *, _PyThreadState_UncheckedGet, (void))
{
	return fake_python.current;
}

FAKE(void *, PyErr_Occurred, (void))
{
	demand(fake_python.mine);
	return fake_python.error;
}

FAKE(void, PyErr_Clear, (void))
{
	fake_python.error = NULL;
}

FAKE(int, PyGC_Disable, (void))
{
	demand(!fake_python.paused);
	fake_python.paused = true;
	return 1;
}

FAKE(int, PyGC_Enable, (void))
{
	demand(fake_python.paused);
	fake_python.paused = false;
	return 0;
}

FAKE(void *, PyEval_GetFrame, (void))
{
	demand(fake_python.paused && fake_python.mine == fake_python.current && !fake_python.error);
	return fake_python.frame;
}

FAKE(int, PyFrame_GetLineNumber, (void *frame))
{
	return ((struct fake_frame *)frame)->line;
}

/* A line has one instruction, which has its number. */
FAKE(int, PyFrame_GetLasti, (void *frame))
{
	return ((struct fake_frame *)frame)->line;
}

FAKE(int, PyCode_Addr2Line, (void *code, int offset))
{
	demand(code);
	return offset;
}

FAKE(void *, PyFrame_GetCode, (void *frame))
{
	struct fake_code *code = ((struct fake_frame *)frame)->code;
	code->references++;
	return code;
}

FAKE(void *, PyFrame_GetBack, (void *frame))
{
	demand(fake_python.paused);
	struct fake_frame *back = ((struct fake_frame *)frame)->back;
	if (back)
		back->references++;
	return back;
}

FAKE(void *, PyObject_GetAttrString, (void *object, const char *name))
{
	struct fake_code *code = object;
	if (strcmp(name, "co_qualname") == 0 && fake_python.old) {
		fake_python.error = code;
		return NULL;
	}
	fake_python.strings++;
	return strcmp(name, "co_filename") == 0 ? code->file : code->name;
}

FAKE(const char *, PyUnicode_AsUTF8, (void *object))
{
	return ((struct fake_string *)object)->text;
}

/* Where an object counts its references. */
static int *count(void *object)
{
	for (struct fake_frame *frame = fake_python.frame; frame; frame = frame->back) {
		if (object == frame)
			return &frame->references;
		if (object == frame->code)
			return &frame->code->references;
	}
	return &fake_python.strings;
}

FAKE(void, Py_IncRef, (void *object))
{
	++*count(object);
}

FAKE(void, Py_DecRef, (void *object))
{
	demand(--*count(object) >= 0);
}
