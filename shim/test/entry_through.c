/* entry_through.c: a library that calls back. Built for other sizes of its frame, its code differs in that number only. */
#define TEXT(x) #x
#define NUMBER(x) TEXT(x)

void through(void (*function)(void *), void *arg);

__asm__(".globl through\n"
	".type through, @function\n"
	"through:\n"
	".cfi_startproc\n"
	"sub $" NUMBER(FRAME) ", %rsp\n"
	".cfi_adjust_cfa_offset " NUMBER(FRAME) "\n"
	"mov %rdi, %rax\n"
	"mov %rsi, %rdi\n"
	"call *%rax\n"
	"add $" NUMBER(FRAME) ", %rsp\n"
	".cfi_adjust_cfa_offset -" NUMBER(FRAME) "\n"
	"ret\n"
	".cfi_endproc\n"
	".size through, . - through\n"
	".section .note.GNU-stack,\"\",@progbits\n");
