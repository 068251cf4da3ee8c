/*
 * test_stack.c: call stacks. The shim is built so that it compares each of them with what the compiler's unwinder finds, and
 * aborts if they differ: here programs do to their stacks what makes that hard.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

/* How often the unwinder walked; once per create is the comparison. Counted by a jump, which has no frame. */
static _Atomic unsigned unwound __attribute__((used));
static void *unwinder __attribute__((used));
__asm__(".globl _Unwind_Backtrace\n"
	".type _Unwind_Backtrace, @function\n"
	"_Unwind_Backtrace:\n"
	"lock incl unwound(%rip)\n"
	"jmp *unwinder(%rip)\n"
	".size _Unwind_Backtrace, . - _Unwind_Backtrace\n");

__attribute__((constructor)) static void find_unwinder(void)
{
	unwinder = dlsym(RTLD_NEXT, "_Unwind_Backtrace");
}

static uint32_t tag_here(void)
{
	OK(clReleaseMemObject(new_buffer(10)));
	return last_event(GMT_KIND_CREATE).tag;
}

static __attribute__((noinline)) void create(void *unused)
{
	(void)unused;
	OK(clReleaseMemObject(new_buffer(10)));
	__asm__ volatile(""); /* no tail call */
}

static void start(void)
{
	begin((struct options){.tagmode = GMT_TAGS_STACK});
}

/* Whether the unwinder was needed for the stacks of a function's creates. */
static bool unwinds(void (*function)(void *), void *arg, unsigned creates)
{
	unwound = 0;
	function(arg);
	CHECK(unwound >= creates);
	return unwound > creates;
}

TEST(ordinary_stacks_need_no_unwinder)
{
	start();
	for (int i = 0; i < 100; i++)
		CHECK(!unwinds(create, NULL, 1));
	end_clean();
}

static void clean_up(int *unused)
{
	(void)unused;
}

/* Its entry names a function for exceptions, by a pointer to a pointer, as those of C++ do. */
static __attribute__((noinline, optimize("exceptions"))) void with_cleanup(void *unused)
{
	int kept __attribute__((cleanup(clean_up))) = 1;
	create(unused);
	__asm__ volatile("" : "+r"(kept));
}

TEST(stacks_through_code_with_exceptions_need_no_unwinder)
{
	start();
	CHECK(!unwinds(with_cleanup, NULL, 1));
	end_clean();
}

TEST(equal_stacks_have_equal_tags)
{
	start();
	uint32_t tags[3];
	for (volatile int i = 0; i < 3; i++)
		tags[i] = tag_here();
	EQUAL(tags[0], tags[1]);
	EQUAL(tags[0], tags[2]);
	CHECK(tag_here() != tags[0]);
	end_clean();
}

/* A random tree of calls. */
struct tree {
	uint64_t random;
	unsigned creates;
	jmp_buf back;
};

static unsigned draw(struct tree *tree, unsigned below)
{
	tree->random = tree->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(tree->random >> 33) % below;
}

static void grow(struct tree *tree, int depth);

#define NODE(name) static __attribute__((noinline)) void name(struct tree *tree, int depth)

NODE(plain)
{
	volatile int after = depth;
	grow(tree, depth);
	after++;
}

static __attribute__((noinline, optimize("no-omit-frame-pointer"))) void with_frame_pointer(struct tree *tree, int depth)
{
	volatile int after = depth;
	grow(tree, depth);
	after++;
}

NODE(with_alloca)
{
	size_t size = 1 + draw(tree, 3000);
	volatile char *room = alloca(size);
	room[0] = room[size - 1] = 1;
	grow(tree, depth);
	room[0]++;
}

NODE(with_alignment)
{
	volatile char room[64] __attribute__((aligned(64)));
	room[0] = 1;
	grow(tree, depth);
	room[0]++;
}

NODE(with_alignment_and_alloca)
{
	size_t size = 1 + draw(tree, 500);
	volatile char room[32] __attribute__((aligned(32))), *more = alloca(size);
	room[0] = more[0] = more[size - 1] = 1;
	grow(tree, depth);
	room[0]++;
}

static __attribute__((noinline)) unsigned many(struct tree *tree, int depth, int a, int b, int c, int d, int e, int f, int g)
{
	grow(tree, depth);
	return (unsigned)(a + b + c + d + e + f + g);
}

NODE(with_many_arguments)
{
	int a = (int)draw(tree, 9), b = (int)draw(tree, 9);
	CHECK(many(tree, depth, a, b, a + b, a & b, a * b, a ^ b, a | b) < 1000);
}

NODE(with_large_frame)
{
	volatile char room[20000];
	room[0] = room[sizeof room - 1] = 1;
	grow(tree, depth);
	room[0]++;
}

NODE(that_jumps)
{
	jmp_buf outer;
	memcpy(&outer, &tree->back, sizeof outer);
	if (setjmp(tree->back) == 0) {
		grow(tree, depth);
		if (draw(tree, 2))
			longjmp(tree->back, 1);
	} else {
		create(NULL);
	}
	memcpy(&tree->back, &outer, sizeof outer);
}

static void (*const nodes[])(struct tree *, int) = {plain, with_frame_pointer, with_alloca, with_alignment, with_alignment_and_alloca,
						    with_many_arguments, with_large_frame, that_jumps};
enum { NODES = sizeof nodes / sizeof nodes[0] };

static void grow(struct tree *tree, int depth)
{
	for (unsigned i = draw(tree, 2); i < 2; i++) {
		create(NULL);
		tree->creates++;
		if (depth > 0 && tree->creates < 1000)
			nodes[draw(tree, NODES)](tree, depth - 1);
	}
}

static void *grow_tree(void *seed)
{
	struct tree tree = {.random = *(const uint64_t *)seed};
	grow(&tree, 12);
	return NULL;
}

/* STACK_SEED=N tries others. */
TEST(random_stacks_are_the_unwinders)
{
	start();
	const char *seed = getenv("STACK_SEED");
	for (uint64_t i = 1; i <= 20; i++) {
		uint64_t number = (seed ? strtoull(seed, NULL, 10) : 0) * 1000 + i;
		grow_tree(&number);
	}
	end_clean();
}

TEST(hammer_stacks_from_threads)
{
	start();
	uint64_t seeds[8];
	pthread_t threads[8];
	for (uint64_t i = 0; i < 8; i++) {
		seeds[i] = 100 + i;
		CHECK(pthread_create(&threads[i], NULL, grow_tree, &seeds[i]) == 0);
	}
	for (int i = 0; i < 8; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	end_clean();
}

static void handle(int signal)
{
	create(&signal);
}

static void raise_signal(void *number)
{
	CHECK(raise(*(int *)number) == 0);
}

TEST(stacks_of_signal_handlers)
{
	start();
	create(NULL); /* so that none in a handler allocates */
	int number = SIGUSR1;
	stack_t other = {.ss_sp = malloc(1 << 17), .ss_size = 1 << 17};
	CHECK(other.ss_sp && sigaltstack(&other, NULL) == 0);
	for (int flags = 0; flags <= SA_ONSTACK; flags += SA_ONSTACK) {
		struct sigaction action = {.sa_handler = handle, .sa_flags = flags};
		CHECK(sigaction(number, &action, NULL) == 0);
		CHECK(unwinds(raise_signal, &number, 1));
	}
	end_clean();
	free(other.ss_sp);
}

static ucontext_t main_context, coroutine;

static void run_coroutine(void)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		create(NULL);
		grow_tree(&seed);
		CHECK(swapcontext(&coroutine, &main_context) == 0);
	}
}

TEST(stacks_of_coroutines)
{
	start();
	const size_t bytes = 1 << 20;
	void *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(stack != MAP_FAILED);
	CHECK(getcontext(&coroutine) == 0);
	coroutine.uc_stack = (stack_t){.ss_sp = stack, .ss_size = bytes};
	coroutine.uc_link = &main_context;
	makecontext(&coroutine, run_coroutine, 0);
	for (int i = 0; i < 6; i++) {
		CHECK(swapcontext(&main_context, &coroutine) == 0);
		create(NULL);
	}
	CHECK(munmap(stack, bytes) == 0);
	create(NULL);
	end_clean();
}

/* Code that calls back. */
struct passage {
	void *library;
	void (*through)(void (*)(void *), void *);
};

static void pass(void *passage)
{
	((struct passage *)passage)->through(create, NULL);
	__asm__ volatile("");
}

static struct passage open_passage(const char *name)
{
	struct passage p = {.library = dlopen(path_beside(name), RTLD_NOW | RTLD_LOCAL)};
	CHECK(p.library);
	void *symbol = dlsym(p.library, "through");
	CHECK(symbol);
	memcpy(&p.through, &symbol, sizeof symbol);
	return p;
}

TEST(stacks_through_libraries_that_replace_each_other)
{
	start();
	const char *const names[] = {"libnarrow.so", "libwide.so"}; /* the same addresses, other frames */
	struct passage last = {0};
	int replaced = 0;
	for (int i = 0; i < 20; i++) {
		struct passage p = open_passage(names[i % 2]);
		replaced += p.through == last.through;
		last = p;
		pass(&p);
		CHECK(!unwinds(pass, &p, 1));
		CHECK(dlclose(p.library) == 0);
	}
	CHECK(replaced > 0);
	end_clean();
}

/* libgcc's: tables of generated code, as LLVM, and so Julia and Numba, give them to it. */
extern void __register_frame(void *tables);
extern void __deregister_frame(void *tables);

/* What entry_through.c has, with another frame. */
static void generate(unsigned char *code, unsigned char *tables, unsigned char frame)
{
	const unsigned char instructions[] = {0x48, 0x83, 0xec, frame,  /* sub $frame, %rsp */
					      0x48, 0x89, 0xf8,         /* mov %rdi, %rax */
					      0x48, 0x89, 0xf7,         /* mov %rsi, %rdi */
					      0xff, 0xd0,               /* call *%rax */
					      0x48, 0x83, 0xc4, frame, 0xc3}; /* add $frame, %rsp; ret */
	memcpy(code, instructions, sizeof instructions);
	/* A common entry: version 1, no augmentation, factors 1 and -8, return address in 16; frame at rsp + 8. */
	const unsigned char common[] = {16, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0};
	/* One of the function: where it is, and the frame behind the first instruction. */
	unsigned char function[28] = {24, 0, 0, 0, 24, 0, 0, 0, [24] = 0x44, 0x0e, (unsigned char)(frame + 8), 0};
	const uint64_t range[2] = {(uintptr_t)code, sizeof instructions};
	memcpy(function + 8, range, sizeof range);
	memcpy(tables, common, sizeof common);
	memcpy(tables + sizeof common, function, sizeof function);
	memset(tables + sizeof common + sizeof function, 0, 4);
}

TEST(stacks_through_code_that_is_generated_anew)
{
	start();
	unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	struct passage p;
	memcpy(&p.through, &page, sizeof page);
	for (int i = 0; i < 20; i++) {
		generate(page, page + 1024, i % 2 ? 40 : 72);
		__register_frame(page + 1024);
		pass(&p);
		CHECK(!unwinds(pass, &p, 1));
		CHECK(last_event(GMT_KIND_CREATE).tag != 0);
		__deregister_frame(page + 1024);
	}
	CHECK(munmap(page, 4096) == 0);
	end_clean();
}

/* The frames of the last tag behind that of generated code. */
static size_t frames_behind_generated(void)
{
	struct gmtframe frames[GMT_STACK_MAX];
	size_t count = last_event(GMT_KIND_TAG).size / sizeof frames[0], i = 0;
	memcpy(frames, last_text(GMT_KIND_TAG), count * sizeof frames[0]);
	while (i < count && frames[i].module)
		i++;
	CHECK(i < count);
	return count - i - 1;
}

/* Code that calls the argument, without tables. */
TEST(stacks_through_code_with_frame_pointers)
{
	static const unsigned char keeps[] = {0x55, 0x48, 0x89, 0xe5, /* push %rbp; mov %rsp, %rbp */
					      0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3};
	static const unsigned char loses[] = {0x55, 0x48, 0xc7, 0xc5, 0x34, 0x12, 0, 0, /* push %rbp; mov $0x1234, %rbp */
					      0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3};
	static const unsigned char fakes[] = {0x55, 0x68, 0x34, 0x12, 0, 0, 0x55, 0x48, 0x89, 0xe5, /* push $0x1234 as return address */
					      0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3};
	start();
	unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED);
	struct passage p;
	memcpy(&p.through, &page, sizeof page);
	memcpy(page, keeps, sizeof keeps);
	pass(&p);
	CHECK(frames_behind_generated() > 0);
	CHECK(!unwinds(pass, &p, 1));
	memcpy(page, loses, sizeof loses);
	pass(&p);
	EQUAL(frames_behind_generated(), 0);
	memcpy(page, fakes, sizeof fakes);
	pass(&p);
	EQUAL(frames_behind_generated(), 0);
	CHECK(munmap(page, 4096) == 0);
	end_clean();
}

/* Code without tables, where a library was. */
TEST(stacks_through_generated_code)
{
	start();
	struct passage p = open_passage("libnarrow.so");
	pass(&p);
	CHECK(!unwinds(pass, &p, 1));
	unsigned char code[32];
	void *symbol;
	memcpy(&symbol, &p.through, sizeof symbol);
	memcpy(code, symbol, sizeof code);
	CHECK(dlclose(p.library) == 0);
	char *page = (char *)((uintptr_t)symbol & ~(uintptr_t)4095);
	CHECK(mmap(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == page);
	memcpy(symbol, code, sizeof code);
	for (int i = 0; i < 3; i++)
		pass(&p);
	CHECK(!unwinds(pass, &p, 1));
	CHECK(munmap(page, 8192) == 0);
	end_clean();
}
