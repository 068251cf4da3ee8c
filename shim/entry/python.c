/*
 * python.c: see python.h. All frames of native code between two Python functions are the interpreter's, and the same for all
 * call sites. Its public functions return the lines instead. They are called only on a thread whose own state is the current one,
 * which is the one that holds the interpreter's lock, and when no exception is set. Frame objects that they make may
 * not start a garbage collection, which would run code of the program: PyGC_Disable is there since 3.10.
 */
#define _GNU_SOURCE
#include "python.h"

#include "../base/dispatch.h"

#include <link.h>
#include <string.h>

#define FUNCTIONS(F)                                                                                                     \
	F(void *, PyGILState_GetThisThreadState, (void))                                                                  \
	F(void *, _PyThreadState_UncheckedGet, (void))                                                                    \
	F(void *, PyErr_Occurred, (void))                                                                                 \
	F(void, PyErr_Clear, (void))                                                                                      \
	F(int, PyGC_Disable, (void))                                                                                      \
	F(int, PyGC_Enable, (void))                                                                                       \
	F(void *, PyEval_GetFrame, (void))                                                                                \
	F(int, PyFrame_GetLineNumber, (void *frame))                                                                      \
	F(void *, PyFrame_GetCode, (void *frame))                                                                         \
	F(void *, PyFrame_GetBack, (void *frame))                                                                         \
	F(void *, PyObject_GetAttrString, (void *object, const char *name))                                               \
	F(const char *, PyUnicode_AsUTF8, (void *object))                                                                 \
	F(void, Py_IncRef, (void *object))                                                                                \
	F(void, Py_DecRef, (void *object))

#define MEMBER(type, name, arguments) type(*name) arguments;
static struct {
	FUNCTIONS(MEMBER)
} python;
static uintptr_t first, last; /* address of the interpreter's image */
static _Atomic int state;     /* 1: looked, 2: looking, 3: found */

static int find_image(struct dl_phdr_info *file, size_t size, void *unused)
{
	(void)size, (void)unused;
	uintptr_t low = UINTPTR_MAX, high = 0, inside = (uintptr_t)python.PyEval_GetFrame;
	for (int i = 0; i < file->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &file->dlpi_phdr[i];
		uintptr_t start = file->dlpi_addr + part->p_vaddr;
		if (part->p_type == PT_LOAD && start < low)
			low = start;
		if (part->p_type == PT_LOAD && start + part->p_memsz > high)
			high = start + part->p_memsz;
	}
	if (inside < low || inside >= high)
		return 0;
	first = low;
	last = high;
	return 1;
}

void gmt_python_look(void)
{
	int was = atomic_load(&state);
	if (was > 1 || !atomic_compare_exchange_strong(&state, &was, 2))
		return;
	bool all = true;
#define LOOK(type, name, arguments)                                                                                      \
	void *symbol_##name = gmt_real_dlsym()(RTLD_DEFAULT, #name);                                                       \
	memcpy(&python.name, &symbol_##name, sizeof symbol_##name);                                                        \
	all = all && symbol_##name;
	FUNCTIONS(LOOK)
	atomic_store(&state, all && dl_iterate_phdr(find_image, NULL) ? 3 : 1);
}

bool gmt_python_runs(void)
{
	int known = atomic_load_explicit(&state, memory_order_acquire);
	if (gmt_unlikely(known == 0)) {
		gmt_python_look();
		known = atomic_load_explicit(&state, memory_order_acquire);
	}
	if (gmt_likely(known != 3))
		return false;
	void *mine = python.PyGILState_GetThisThreadState();
	return mine && mine == python._PyThreadState_UncheckedGet() && !python.PyErr_Occurred();
}

bool gmt_python_holds(uintptr_t address)
{
	return address >= first && address < last;
}

unsigned gmt_python_lines(struct gmt_python_line *lines, unsigned most)
{
	unsigned count = 0;
	int collects = python.PyGC_Disable();
	void *frame = python.PyEval_GetFrame();
	if (frame)
		python.Py_IncRef(frame);
	while (frame && count < most) {
		int line = python.PyFrame_GetLineNumber(frame);
		void *code = python.PyFrame_GetCode(frame), *back = python.PyFrame_GetBack(frame);
		lines[count++] = (struct gmt_python_line){code, line > 0 ? (uint64_t)line : 0};
		python.Py_DecRef(code);
		python.Py_DecRef(frame);
		frame = back;
	}
	if (frame)
		python.Py_DecRef(frame);
	if (python.PyErr_Occurred())
		python.PyErr_Clear(); /* ours: there was none before */
	if (collects)
		python.PyGC_Enable();
	return count;
}

/* Appends an attribute and a NUL. */
static size_t append(void *code, const char *attribute, char *text, size_t size)
{
	void *object = python.PyObject_GetAttrString(code, attribute);
	const char *value = object ? python.PyUnicode_AsUTF8(object) : NULL;
	size_t length = value ? strnlen(value, size - 1) : 0;
	if (length)
		memcpy(text, value, length);
	text[length] = 0;
	if (object)
		python.Py_DecRef(object);
	if (python.PyErr_Occurred())
		python.PyErr_Clear();
	return length ? length + 1 : 0;
}

size_t gmt_python_name(void *code, char *text, size_t size)
{
	size_t file = append(code, "co_filename", text, size / 2);
	if (!file)
		return 0;
	size_t name = append(code, "co_qualname", text + file, size / 2); /* since 3.11 */
	if (!name)
		name = append(code, "co_name", text + file, size / 2);
	python.Py_IncRef(code);
	return file + name - (name > 0);
}
