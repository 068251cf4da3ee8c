/* sentence.c: see sentence.h. */
#define _GNU_SOURCE
#include "sentence.h"

#include "../base/ring.h"
#include "../base/session.h"
#include "figures.h"
#include "user_event.h"

#include <stdarg.h>
#include <stdio.h>

#define MEBI(bytes) ((double)(bytes) / 1048576)

struct text {
	char bytes[600];
	size_t length;
};

__attribute__((format(printf, 2, 3))) static void append_text(struct text *text, const char *format, ...)
{
	va_list values;
	va_start(values, format);
	int length = vsnprintf(text->bytes + text->length, sizeof text->bytes - text->length, format, values);
	va_end(values);
	text->length += length > 0 ? (size_t)length : 0;
	if (text->length >= sizeof text->bytes)
		text->length = sizeof text->bytes - 1;
}

static void append_account(struct text *text, const struct gmt_spill_account *account)
{
	static const char *const reasons[GMT_SPILL_WHYS] = {
		[GMT_SPILL_RUNNING] = "commands run that use it",
		[GMT_SPILL_CALLED] = "other calls use it",
		[GMT_SPILL_WAITING] = "commands that use it may wait for the program",
		[GMT_SPILL_MAPPED] = "it is mapped",
		[GMT_SPILL_FIXED] = "it has images with properties, or its queue is not known",
		[GMT_SPILL_OTHERS] = "images, SVM, imports and host memory stay",
	};
	uint64_t all = 0;
	for (int i = GMT_SPILL_RUNNING; i < GMT_SPILL_WHYS; i++)
		all += account->bytes[i];
	if (!all)
		return;
	append_text(text, "; %.1f MiB of what it holds cannot go to the host now", MEBI(all));
	const char *mark = ": ";
	for (int i = GMT_SPILL_RUNNING; i < GMT_SPILL_WHYS; i++)
		if (account->bytes[i]) {
			append_text(text, "%s%.1f MiB (%s)", mark, MEBI(account->bytes[i]), reasons[i]);
			mark = ", ";
		}
}

/* At most a few times: the program may go on without what it did not get. */
void gmt_spill_say_short(const struct gmt_spill_command *command, const struct gmt_spill_account *account)
{
	static _Atomic uint32_t said;
	uint64_t card = gmt_session.config.devicememory;
	if (!gmt_session.region || atomic_fetch_add(&said, 1) >= 4)
		return;
	struct text text = {.length = 0};
	char kernel[200] = "";
	if (command && command->kernel)
		gmt_bare.clGetKernelInfo(command->kernel, CL_KERNEL_FUNCTION_NAME, sizeof kernel, kernel, NULL);
	if (command)
		append_text(&text, "%s%s%s needs %.1f MiB at once", command->name, *kernel ? " of " : "", kernel, MEBI(gmt_spill_needed_bytes(command)));
	else
		append_text(&text, "there is no room for an object that cannot spill");
	if (card)
		append_text(&text, "; the card has %.1f MiB", MEBI(card));
	append_account(&text, account);
	if (account->bytes[GMT_SPILL_WAITING] && gmt_spill_gated_here())
		append_text(&text, "; this thread has not set its user events");
	gmt_diag(GMT_DIAG_SPILL, text.bytes);
}
