/* cfi.c: see cfi.h. It does not read what compilers rarely write. */
#include "cfi.h"

#ifdef __x86_64__

#include <stddef.h>
#include <string.h>

enum { RBP = GMT_CFI_RBP, RSP = GMT_CFI_RSP, RETURN = GMT_CFI_RETURN, STATES = 8 };

struct reader {
	const unsigned char *at, *end;
	bool bad; /* something that we cannot read */
};

static uint64_t read_fixed_size(struct reader *r, size_t bytes)
{
	uint64_t value = 0;
	if (bytes > (size_t)(r->end - r->at)) {
		r->bad = true;
		return 0;
	}
	memcpy(&value, r->at, bytes); /* little endian */
	r->at += bytes;
	return value;
}

static uint64_t read_leb(struct reader *r, unsigned *bits)
{
	uint64_t value = 0, byte = 0x80;
	for (*bits = 0; (byte & 0x80) && *bits < 63 && !r->bad; *bits += 7) {
		byte = read_fixed_size(r, 1);
		value |= (byte & 0x7f) << *bits;
	}
	r->bad |= (byte & 0x80) != 0;
	return value;
}

static uint64_t read_unsigned_leb(struct reader *r)
{
	unsigned bits;
	return read_leb(r, &bits);
}

static int64_t read_signed_leb(struct reader *r)
{
	unsigned bits;
	uint64_t value = read_leb(r, &bits);
	return bits ? (int64_t)(value << (64 - bits)) >> (64 - bits) : 0;
}

static void skip_bytes(struct reader *r, uint64_t bytes)
{
	if (bytes > (uint64_t)(r->end - r->at))
		r->bad = true;
	else
		r->at += bytes;
}

/* Bytes of a pointer in an encoding; 0: they vary. An upper bit (DW_EH_PE_indirect, used for C++) does not change them. */
static size_t pointer_bytes(unsigned encoding)
{
	static const unsigned char bytes[8] = {[0] = 8, [2] = 2, [3] = 4, [4] = 8};
	return (encoding & 0x70) < 0x50 ? bytes[encoding & 7] : 0; /* 0x50: aligned */
}

struct program {
	struct reader in;
	struct gmt_cfi states[STATES];
	struct gmt_cfi *now;
	uint64_t address, target;
	uint64_t code; /* alignment factors */
	int64_t data;
};

static void set_saved_register(struct program *p, uint64_t what, int64_t offset)
{
	if (what == RBP) {
		p->now->rbp = AT_FRAME;
		p->now->rbp_offset = offset;
	} else if (what == RETURN) {
		p->in.bad |= offset != -8;
		p->now->caller = ON_STACK;
	} else {
		p->in.bad |= what == RSP;
	}
}

/* A register has a rule of another kind. */
static void set_unknown_register(struct program *p, uint64_t what)
{
	if (what == RBP)
		p->now->rbp = ELSEWHERE;
	else
		p->in.bad |= what == RSP || what == RETURN;
}

static void set_unchanged_register(struct program *p, uint64_t what)
{
	if (what == RBP)
		p->now->rbp = SAME;
	else
		p->in.bad |= what == RSP || what == RETURN;
}

/* Reads an expression that computes rbp plus a number, and perhaps loads from there. False: it computes something else. */
static bool read_bp_plus(struct program *p, int64_t *offset, bool *reads)
{
	enum { BREG6 = 0x76, DEREF = 0x06 };
	uint64_t bytes = read_unsigned_leb(&p->in);
	struct reader in = p->in;
	skip_bytes(&p->in, bytes);
	in.end = p->in.at;
	if (p->in.bad || read_fixed_size(&in, 1) != BREG6)
		return false;
	*offset = read_signed_leb(&in);
	*reads = in.at < in.end && read_fixed_size(&in, 1) == DEREF;
	return !in.bad && in.at == in.end;
}

static void execute_frame_expression(struct program *p)
{
	bool reads = false;
	p->now->base = RBP;
	p->now->frame = BY_MEMORY;
	if (!read_bp_plus(p, &p->now->offset, &reads) || !reads)
		p->now->base = RETURN; /* no register that we follow */
}

static void execute_register_expression(struct program *p)
{
	uint64_t what = read_unsigned_leb(&p->in);
	int64_t offset = 1;
	bool reads = false;
	bool simple = read_bp_plus(p, &offset, &reads) && !reads && offset == 0;
	set_unknown_register(p, what);
	if (what == RBP && simple)
		p->now->rbp = AT_BP;
}

static void set_frame_rule(struct program *p, uint64_t base, int64_t offset)
{
	p->now->frame = BY_REGISTER;
	p->now->base = base;
	p->now->offset = offset;
}

static void push_state(struct program *p)
{
	if (p->now == &p->states[STATES - 1]) {
		p->in.bad = true;
		return;
	}
	p->now[1] = p->now[0];
	p->now++;
}

static void set_undefined_register(struct program *p, uint64_t what)
{
	if (what == RETURN)
		p->now->caller = NOWHERE;
	else
		set_unknown_register(p, what);
}

/* Executes an instruction about the frame's address, whose operation takes all eight bits. */
static void execute_frame_instruction(struct program *p, uint64_t op)
{
	uint64_t what;
	switch (op) {
	case 0x0c: /* def_cfa */
		what = read_unsigned_leb(&p->in);
		set_frame_rule(p, what, (int64_t)read_unsigned_leb(&p->in));
		return;
	case 0x0d: /* def_cfa_register */
		set_frame_rule(p, read_unsigned_leb(&p->in), p->now->offset);
		return;
	case 0x0e: /* def_cfa_offset */
		p->now->offset = (int64_t)read_unsigned_leb(&p->in);
		return;
	default: /* def_cfa_expression */
		execute_frame_expression(p);
	}
}

/* Executes another one of eight bits, about registers or the code. */
static void execute_other_instruction(struct program *p, uint64_t op)
{
	struct reader *in = &p->in;
	uint64_t what;
	switch (op) {
	case 0x00: /* nop */
		return;
	case 0x02: /* advance_loc1, 2, 4 */
	case 0x03:
	case 0x04:
		p->address += read_fixed_size(in, (size_t)1 << (op - 2)) * p->code;
		return;
	case 0x05: /* offset_extended */
		what = read_unsigned_leb(in);
		set_saved_register(p, what, (int64_t)read_unsigned_leb(in) * p->data);
		return;
	case 0x06: /* restore_extended */
	case 0x08: /* same_value */
		set_unchanged_register(p, read_unsigned_leb(in));
		return;
	case 0x07: /* undefined */
		set_undefined_register(p, read_unsigned_leb(in));
		return;
	case 0x0a: /* remember_state */
		push_state(p);
		return;
	case 0x0b: /* restore_state */
		in->bad |= p->now == p->states;
		p->now -= p->now > p->states;
		return;
	case 0x10: /* expression */
		execute_register_expression(p);
		return;
	case 0x2e: /* GNU_args_size: for exceptions only */
		read_unsigned_leb(in);
		return;
	default:
		in->bad = true;
	}
}

/* Executes instructions until they are about code after the target. */
static void execute_until_target(struct program *p)
{
	while (p->in.at < p->in.end && p->address < p->target && !p->in.bad) {
		uint64_t op = read_fixed_size(&p->in, 1), low = op & 0x3f;
		switch (op >> 6) {
		case 1: /* advance_loc */
			p->address += low * p->code;
			break;
		case 2: /* offset */
			set_saved_register(p, low, (int64_t)read_unsigned_leb(&p->in) * p->data);
			break;
		case 3: /* restore */
			set_unchanged_register(p, low);
			break;
		default:
			(op >= 0x0c && op <= 0x0f ? execute_frame_instruction : execute_other_instruction)(p, op);
		}
	}
}

/* Returns the encoding of addresses in entries, from the augmentation. Signal frames and unknown augmentations are bad. */
static unsigned read_augmentation(struct reader *in, const unsigned char *letters)
{
	unsigned encoding = 0;
	uint64_t bytes = *letters == 'z' ? read_unsigned_leb(in) : 0;
	struct reader data = *in;
	skip_bytes(in, bytes);
	data.end = in->at;
	in->bad |= *letters && *letters != 'z';
	for (letters += *letters != 0; *letters && !in->bad; letters++) {
		unsigned of_pointer;
		switch (*letters) {
		case 'R':
			encoding = (unsigned)read_fixed_size(&data, 1);
			break;
		case 'P':
			of_pointer = (unsigned)read_fixed_size(&data, 1);
			in->bad |= pointer_bytes(of_pointer) == 0;
			skip_bytes(&data, pointer_bytes(of_pointer));
			break;
		case 'L':
			read_fixed_size(&data, 1);
			break;
		default:
			in->bad = true;
		}
	}
	in->bad |= data.bad;
	return encoding;
}

/* Opens an entry at its length, and reads up to the field after which the two kinds of entry differ. */
static struct reader open_entry(const unsigned char *entry, const unsigned char **common)
{
	struct reader in = {entry, entry + 4, false};
	uint64_t bytes = read_fixed_size(&in, 4);
	in.end = in.at + bytes;
	in.bad = bytes == 0 || bytes >= 0xfffffff0; /* 64 bits */
	const unsigned char *field = in.at;
	*common = field - read_fixed_size(&in, 4);
	return in;
}

/* Reads a CIE, which several functions' entries share. Returns the encoding of addresses in these. */
static unsigned read_common_entry(struct program *p, const unsigned char *entry, bool *augmented)
{
	const unsigned char *none;
	p->in = open_entry(entry, &none);
	uint64_t version = read_fixed_size(&p->in, 1);
	const unsigned char *letters = p->in.at;
	*augmented = *letters == 'z';
	skip_bytes(&p->in, strnlen((const char *)letters, (size_t)(p->in.end - p->in.at)) + 1);
	p->code = read_unsigned_leb(&p->in);
	p->data = read_signed_leb(&p->in);
	uint64_t column = version == 1 ? read_fixed_size(&p->in, 1) : read_unsigned_leb(&p->in);
	p->in.bad |= (version != 1 && version != 3) || column != RETURN;
	if (p->in.bad)
		return 0;
	unsigned encoding = read_augmentation(&p->in, letters);
	execute_until_target(p);
	return encoding;
}

bool gmt_cfi_read(const unsigned char *entry, uintptr_t function, uintptr_t address, struct gmt_cfi *found)
{
	const unsigned char *common;
	struct reader in = open_entry(entry, &common);
	struct program p = {.address = function, .target = address};
	p.now = p.states;
	bool augmented;
	size_t bytes = in.bad ? 0 : pointer_bytes(read_common_entry(&p, common, &augmented));
	if (p.in.bad || bytes == 0)
		return false;
	skip_bytes(&in, 2 * bytes);
	if (augmented)
		skip_bytes(&in, read_unsigned_leb(&in));
	p.in = in;
	execute_until_target(&p);
	*found = *p.now;
	return !p.in.bad;
}

#endif
