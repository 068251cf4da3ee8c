/* simulate_program.c: programs from a seed, as text, and from text. */
#define _GNU_SOURCE
#include "simulate.h"

#include <stdlib.h>
#include <string.h>

#define OPERATION(name, weight, arguments) {#name, weight, arguments},
#define KNOB(name) #name,
static const struct {
	const char *name;
	unsigned weight;
	const char *arguments;
} operations[] = {OPERATIONS(OPERATION)};
static const char *const knobs[] = {KNOB_NAMES(KNOB)};

static uint64_t state;
static uint32_t queues; /* how many places a program has for them */
static bool fails; /* commands, user events and the core do: then the pool serves little from there on */

static uint32_t pick(uint32_t below)
{
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return (uint32_t)((state >> 32) * below >> 32);
}

static uint32_t one_in(uint32_t most)
{
	return pick(most) == 0;
}

/* Many sizes are asked for again. */
static uint32_t pick_size(void)
{
	static const uint32_t usual[] = {64, 100, 256, 256, 1000, 1024, 4096, 5000};
	return one_in(4) ? 1 + pick(1u << pick(14)) : usual[pick(8)];
}

static uint32_t pick_value(enum knob knob)
{
	static const uint32_t slabs[] = {0, 4096, 16384, 65536}, refusals[] = {1, 2, 100};
	switch (knob) {
	case KNOB_scrub:
		return one_in(2) ? 1 : 1 + pick(3);
	case KNOB_memory:
	case KNOB_cap:
		return 1u << (14 + pick(4));
	case KNOB_slab:
		return slabs[pick(4)];
	case KNOB_refuse:
		return refusals[pick(3)];
	case KNOB_pass:
		return 1u << pick(24);
	case KNOB_message:
		return pick(9);
	case KNOB_failcore:
		return fails ? 1 + pick(400) : 0;
	default:
		return knob < KNOB_slab || one_in(3);
	}
}

static uint32_t pick_argument(char letter, uint32_t before)
{
	switch (letter) {
	case 'k': /* a knob that may change at any time, and its value */
		return KNOB_slab + pick(fails ? KNOBS - KNOB_slab : KNOB_failcore - KNOB_slab);
	case 'v':
		return pick_value((enum knob)before);
	case 'q': /* a queue */
		return pick(queues);
	case 'c': /* a context */
		return one_in(8);
	case 'o': /* out of order */
		return one_in(3);
	case 's':
		return pick_size();
	case 'n': /* a kind of buffer */
		return one_in(3) ? pick(5) : 0;
	case 'p': /* where a part lies, and its length */
		return 8 * pick(16);
	case 'l':
		return 1 + pick(256);
	case 'w': /* of an image */
		return 1u << pick(5);
	case 'r': /* an offset, or a size, where 0 is all */
		return one_in(3) ? pick(4096) : 0;
	case 'f': /* a user event fails */
		return fails && one_in(8);
	case 'm': /* commands that the device runs, 0: all of all queues */
		return one_in(40) ? 0 : 1 + pick(1u << pick(5));
	case 'h': /* how a command is made */
		return (one_in(12) ? 1 + pick(2) : 0) | (one_in(10) ? HOW_BLOCKS : 0) | (fails && one_in(60) ? HOW_FAILS : 0) |
		       (one_in(12) ? HOW_CALLS : 0) | (one_in(4) ? HOW_CREATES : 0);
	default: /* a place, out of a small number, so that it is met again */
		return pick(8);
	}
}

static void add(struct program *program, enum operation operation, uint32_t first, uint32_t second)
{
	program->step[program->count++] = (struct step){operation, {first, second}};
}

void program_random(struct program *program, uint64_t seed, unsigned steps)
{
	unsigned sum = 0;
	for (unsigned i = 0; i < OPERATION_COUNT; i++)
		sum += operations[i].weight;
	state = seed * 0x9e3779b97f4a7c15u | 1;
	program->count = 0;
	fails = one_in(4);
	queues = 1 + pick(4);
	for (uint32_t knob = 0; knob <= KNOB_evict; knob++)
		if (one_in(knob == KNOB_slab ? 2 : 8))
			add(program, OP_set, knob, pick_value(knob));
	add(program, OP_context, 0, 0);
	add(program, OP_queue, 0, 0);
	while (program->count < steps) {
		unsigned at = pick(sum), i = 0;
		while (at >= operations[i].weight)
			at -= operations[i++].weight;
		add(program, (enum operation)i, 0, 0);
		uint32_t *a = program->step[program->count - 1].argument;
		for (unsigned k = 0; operations[i].arguments[k]; k++)
			a[k] = pick_argument(operations[i].arguments[k], a[0]);
	}
}

void program_print(const struct program *program, FILE *out)
{
	for (unsigned i = 0; i < program->count; i++) {
		const struct step *step = &program->step[i];
		unsigned last = ARGUMENTS;
		while (last > 1 && !step->argument[last - 1])
			last--;
		fprintf(out, "%s", operations[step->operation].name);
		for (unsigned a = 0; a < last; a++)
			if (step->operation == OP_set && a == 0)
				fprintf(out, " %s", knobs[step->argument[a] % KNOBS]);
			else
				fprintf(out, " %u", step->argument[a]);
		fprintf(out, "\n");
	}
}

bool program_parse(struct program *program, FILE *in)
{
	char line[128];
	program->count = 0;
	while (program->count < STEPS_MOST && fgets(line, sizeof line, in)) {
		const char *word = strtok(line, " \n");
		if (!word || *word == '#')
			continue;
		unsigned i = 0, at = 0, knob;
		while (i < OPERATION_COUNT && strcmp(word, operations[i].name) != 0)
			i++;
		if (i == OPERATION_COUNT)
			return false;
		add(program, (enum operation)i, 0, 0);
		for (; (word = strtok(NULL, " \n")) && at < ARGUMENTS; at++) {
			for (knob = 0; knob < KNOBS && strcmp(word, knobs[knob]) != 0; knob++) {
			}
			program->step[program->count - 1].argument[at] = knob < KNOBS ? knob : (uint32_t)strtoul(word, NULL, 10);
		}
	}
	return true;
}
