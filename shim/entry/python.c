/*
 * python.c: see python.h. The native frames of Python code are the interpreter's, and the same for all call sites. So the lines
 * of Python are asked of the interpreter's public functions. These may be called only on the thread that holds the
 * interpreter's lock, whose state is the current one, and while no exception is set. They create frame objects, which must not
 * start a garbage collection, since that runs code of the program: hence PyGC_Disable, which exists since 3.10.
 *
 * PyOpenCL releases the lock during reads and writes. The thread still has its Python frames then, which only it changes, so we
 * read the interpreter's structures in place. Two conditions hold. First, under the lock these structures have given the same
 * lines as the functions. Second, without the lock only the main thread reads them, because the interpreter's end removes the
 * frames of other threads. Code objects and their names do not change, and PyCode_Addr2Line and PyUnicode_AsUTF8 of ASCII only
 * read.
 */
#define _GNU_SOURCE
#include "python.h"

#include "../base/dispatch.h"
#include "../base/session.h"

#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FUNCTIONS(F)                                                                                                     \
	F(void *, PyGILState_GetThisThreadState, (void))                                                                  \
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
static void *(*current_state)(void); /* returns the state of the thread that holds the lock */

/* Functions that every version with a known layout has. */
static struct {
	int (*PyCode_Addr2Line)(void *code, int offset);
	int (*PyFrame_GetLasti)(void *frame);
	const unsigned long *Py_Version;
} recent;
static uintptr_t first, last; /* addresses of the interpreter's image */
static _Atomic int state;     /* 1: looked, 2: looking, 3: found */

/*
 * Where a version of CPython keeps frames: offsets in bytes in the thread's state (Include/cpython/pystate.h), in the structure
 * that the state points to, and in a frame (Include/internal/pycore_frame.h).
 */
struct layout {
	unsigned version; /* major and minor, a byte each */
	unsigned thread, holder, code, previous, instruction, owner;
};
#define DIRECTLY 255 /* the thread's state points to the frame */
#define NO_FUNCTION 3 /* values of a frame's owner from this one on: it belongs to no function */
static const struct layout layouts[] = {
	{0x030b, 56, 8, 32, 48, 56, 69},
	{0x030c, 56, 0, 0, 8, 56, 70},
	{0x030d, 72, DIRECTLY, 0, 8, 56, 70},
};
static const struct layout *layout;
static _Atomic int unsure = 4;               /* 0: the layout is right; -1: wrong; else comparisons that may still fail */
static uintptr_t instructions;               /* offset of the instructions in a code object */
static _Atomic unsigned file_at, name_at;    /* words of a code object that have its file and name; 0: unknown */
#define NAMES_FROM 3u                        /* first word that may have them, after the object's head */
#define NAMES_TO 20u
#define ASCII (1u << 6) /* in the state of a string (Include/cpython/unicodeobject.h), byte 32 */

static int find_interpreter_code(struct dl_phdr_info *file, size_t size, void *unused)
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

static void find_layout(void)
{
	void *line = gmt_real_dlsym()(RTLD_DEFAULT, "PyCode_Addr2Line"), *last_instruction = gmt_real_dlsym()(RTLD_DEFAULT, "PyFrame_GetLasti");
	memcpy(&recent.PyCode_Addr2Line, &line, sizeof line);
	memcpy(&recent.PyFrame_GetLasti, &last_instruction, sizeof last_instruction);
	recent.Py_Version = gmt_real_dlsym()(RTLD_DEFAULT, "Py_Version");
	for (size_t i = 0; line && last_instruction && recent.Py_Version && i < sizeof layouts / sizeof layouts[0]; i++)
		if (layouts[i].version == *recent.Py_Version >> 16)
			layout = &layouts[i];
}

void gmt_python_look_for_interpreter(void)
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
	void *current = gmt_real_dlsym()(RTLD_DEFAULT, "PyThreadState_GetUnchecked"); /* since 3.13 */
	if (!current)
		current = gmt_real_dlsym()(RTLD_DEFAULT, "_PyThreadState_UncheckedGet");
	memcpy(&current_state, &current, sizeof current);
	find_layout();
	atomic_store(&state, all && current && dl_iterate_phdr(find_interpreter_code, NULL) ? 3 : 1);
}

static bool is_main_thread(void)
{
	static __thread int is __attribute__((tls_model("initial-exec"))); /* 0: not asked yet */
	if (!is)
		is = syscall(SYS_gettid) == getpid() ? 1 : -1;
	return is > 0;
}

enum gmt_python gmt_python_on_thread(void)
{
	int known = atomic_load_explicit(&state, memory_order_acquire);
	if (gmt_unlikely(known == 0)) {
		gmt_python_look_for_interpreter();
		known = atomic_load_explicit(&state, memory_order_acquire);
	}
	if (gmt_likely(known != 3))
		return GMT_PYTHON_NONE;
	void *mine = python.PyGILState_GetThisThreadState();
	if (!mine)
		return GMT_PYTHON_NONE;
	if (mine == current_state())
		return python.PyErr_Occurred() ? GMT_PYTHON_NONE : GMT_PYTHON_LOCKED;
	bool readable = atomic_load_explicit(&unsure, memory_order_acquire) == 0 && atomic_load_explicit(&file_at, memory_order_relaxed) &&
			atomic_load_explicit(&name_at, memory_order_relaxed);
	return readable && is_main_thread() ? GMT_PYTHON_UNLOCKED : GMT_PYTHON_NONE;
}

bool gmt_python_contains(uintptr_t address)
{
	return address >= first && address < last;
}

/* Reads a word of the interpreter. Until the layout is known to be right, the kernel reads it, so that a wrong address does no harm. */
static bool read_word(uintptr_t address, uintptr_t *value)
{
	if (gmt_likely(atomic_load_explicit(&unsure, memory_order_relaxed) == 0)) {
		*value = *(const uintptr_t *)address;
		return true;
	}
	struct iovec to = {value, sizeof *value}, from = {(void *)address, sizeof *value};
	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof *value;
}

/* The frame that this thread runs, 0 if there is none. */
static uintptr_t innermost_frame_address(void)
{
	uintptr_t at = (uintptr_t)python.PyGILState_GetThisThreadState() + layout->thread;
	if (!read_word(at, &at))
		return 0;
	return layout->holder == DIRECTLY || (at && read_word(at + layout->holder, &at)) ? at : 0;
}

struct read {
	uintptr_t code, instruction, previous;
	bool function;
};

static bool read_frame(uintptr_t frame, struct read *r)
{
	uintptr_t owner;
	if (!read_word(frame + layout->code, &r->code) || !read_word(frame + layout->instruction, &r->instruction) ||
	    !read_word(frame + layout->previous, &r->previous) || !read_word(frame + (layout->owner & ~7u), &owner))
		return false;
	r->function = (owner >> (layout->owner & 7) * 8 & 0xff) < NO_FUNCTION;
	return true;
}

static uint64_t line_of(const struct read *r)
{
	int line = recent.PyCode_Addr2Line((void *)r->code, (int)(r->instruction - r->code - instructions));
	return line > 0 ? (uint64_t)line : 0;
}

/* Whether the structures show the lines that the functions returned. */
static bool lines_agree(void *innermost_frame, const struct gmt_python_line *lines, unsigned count)
{
	struct read r;
	unsigned same = 0;
	for (uintptr_t frame = innermost_frame_address(); frame && same < count; frame = r.previous) {
		if (!read_frame(frame, &r))
			return false;
		if (!r.function)
			continue;
		if (r.code != (uintptr_t)lines[same].code)
			return false;
		if (!same)
			instructions = r.instruction - r.code - (uintptr_t)(intptr_t)recent.PyFrame_GetLasti(innermost_frame);
		if (r.instruction - r.code > INT32_MAX || line_of(&r) != lines[same].line)
			return false;
		same++;
	}
	return same > 0 && same == count;
}

static void compare_layout(void *frame, const struct gmt_python_line *lines, unsigned count)
{
	int failures = atomic_load_explicit(&unsure, memory_order_relaxed);
	if (gmt_likely(failures <= 0) || !layout || !count || gmt_session_seccomp_installed())
		return;
	int saved = errno;
	if (lines_agree(frame, lines, count))
		atomic_store_explicit(&unsure, 0, memory_order_release);
	else
		atomic_store_explicit(&unsure, failures > 1 ? failures - 1 : -1, memory_order_relaxed);
	errno = saved;
}

/* Names are part of a function's identity: its code object may be freed, and another one get its address. */
static uintptr_t identity_of_code(uintptr_t code)
{
	const uintptr_t *object = (const uintptr_t *)code;
	uintptr_t file = object[atomic_load_explicit(&file_at, memory_order_relaxed)], name = object[atomic_load_explicit(&name_at, memory_order_relaxed)];
	return (code ^ file * 0x9e3779b97f4a7c15u ^ name * 0xff51afd7ed558ccdu) | 1;
}

static unsigned read_lines(enum gmt_python runs, struct gmt_python_line *lines, unsigned most)
{
	struct read r;
	unsigned count = 0;
	for (uintptr_t frame = innermost_frame_address(); frame && count < most && read_frame(frame, &r); frame = r.previous)
		if (r.function)
			lines[count++] = (struct gmt_python_line){
				(void *)r.code, runs == GMT_PYTHON_LOCKED ? r.code : identity_of_code(r.code), line_of(&r)};
	return count;
}

unsigned gmt_python_lines(enum gmt_python runs, struct gmt_python_line *lines, unsigned most)
{
	if (atomic_load_explicit(&unsure, memory_order_acquire) == 0) /* without counting a reference to the code objects */
		return read_lines(runs, lines, most);
	unsigned count = 0;
	int collects = python.PyGC_Disable();
	void *frame = python.PyEval_GetFrame(), *innermost_frame = frame;
	if (frame)
		python.Py_IncRef(frame);
	while (frame && count < most) {
		int line = python.PyFrame_GetLineNumber(frame);
		void *code = python.PyFrame_GetCode(frame), *back = python.PyFrame_GetBack(frame);
		lines[count++] = (struct gmt_python_line){code, (uintptr_t)code, line > 0 ? (uint64_t)line : 0};
		python.Py_DecRef(code);
		python.Py_DecRef(frame);
		frame = back;
	}
	if (frame)
		python.Py_DecRef(frame);
	compare_layout(innermost_frame, lines, count);
	if (python.PyErr_Occurred())
		python.PyErr_Clear(); /* of our own call: none was set before */
	if (collects)
		python.PyGC_Enable();
	return count;
}

/*
 * Finds the word of a code object that has a member. The last one counts: outside of classes a function's qualified name is the
 * same object as its name, and comes after it.
 */
static void find_member(const void *code, const void *value, _Atomic unsigned *at)
{
	for (unsigned i = NAMES_FROM; i < NAMES_TO; i++)
		if (((void *const *)code)[i] == value)
			atomic_store_explicit(at, i, memory_order_relaxed);
}

/* Appends an attribute of a code object, asked of the interpreter, and a NUL. */
static size_t append_attribute(void *code, const char *attribute, _Atomic unsigned *at, char *text, size_t size)
{
	void *object = python.PyObject_GetAttrString(code, attribute);
	const char *value = object ? python.PyUnicode_AsUTF8(object) : NULL;
	size_t length = value ? strnlen(value, size - 1) : 0;
	if (length)
		memcpy(text, value, length);
	text[length] = 0;
	if (object && layout)
		find_member(code, object, at);
	if (object)
		python.Py_DecRef(object);
	if (python.PyErr_Occurred())
		python.PyErr_Clear();
	return length ? length + 1 : 0;
}

/* Appends a member of a code object, read in place, and a NUL. */
static size_t append_member(const void *code, unsigned at, char *text, size_t size)
{
	char *object = ((char *const *)code)[at];
	uint32_t kind;
	memcpy(&kind, object + 32, sizeof kind);
	if (!(kind & ASCII))
		return 0;
	const char *value = python.PyUnicode_AsUTF8(object);
	size_t length = value ? strnlen(value, size - 1) : 0;
	if (length)
		memcpy(text, value, length);
	text[length] = 0;
	return length ? length + 1 : 0;
}

size_t gmt_python_name(const struct gmt_python_line *line, char *text, size_t size)
{
	bool locked = line->function == (uintptr_t)line->code;
	size_t file = locked ? append_attribute(line->code, "co_filename", &file_at, text, size / 2)
	                     : append_member(line->code, file_at, text, size / 2);
	if (!file)
		return 0;
	if (!locked) {
		size_t name = append_member(line->code, name_at, text + file, size / 2);
		return name ? file + name - 1 : 0;
	}
	size_t name = append_attribute(line->code, "co_qualname", &name_at, text + file, size / 2); /* since 3.11 */
	if (!name)
		name = append_attribute(line->code, "co_name", &name_at, text + file, size / 2);
	python.Py_IncRef(line->code);
	return file + name - (name > 0);
}
