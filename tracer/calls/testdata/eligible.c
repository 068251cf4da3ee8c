/*
 * eligible.c: prints what the shim says of every kind of request for memory, a byte for each: the reason, and 128 if the pool may
 * serve it. TestEligibleAsInTheShim asks the same in the same order.
 */
#include "../../../shim/pool/plan.h"

#include "../../../internal/wire/eligible.h"

#include <stdio.h>

#define SMALLEST (4u << 20)
#define LARGEST (8u << 20)
#define COUNT(array) (sizeof(array) / sizeof *(array))

struct gmt_session gmt_session;

static struct gmt_context context = {.devices.largest = LARGEST};
static const uint64_t unknown[] = {0, 1ull << 13, 1ull << 31, 1ull << 32, 1ull << 63};
static const uint64_t sizes[] = {0, 1, SMALLEST - 1, SMALLEST, LARGEST, LARGEST + 1};
static const uint32_t alignments[] = {0, 64, 48};
static const cl_mem_properties empty[1], properties[] = {1, 2, 0};
static const cl_mem_properties *const lists[] = {NULL, empty, properties};
static const cl_mem_object_type images[] = {CL_MEM_OBJECT_IMAGE2D, CL_MEM_OBJECT_IMAGE3D, CL_MEM_OBJECT_IMAGE2D_ARRAY, CL_MEM_OBJECT_IMAGE1D};

static void answer(struct gmtpoolrequest r, bool eligible)
{
	putchar((int)gmt_ineligible(r) | (eligible ? 128 : 0));
}

static void buffers(struct gmtpoolrequest r)
{
	for (size_t list = 0; list < COUNT(lists); list++) {
		struct gmt_request_for asked = {
			.context = &context, .flags = r.flags, .size = r.size, .host = r.contents ? &context : NULL, .properties = lists[list],
		};
		r.properties = list > 0;
		answer(r, gmt_plan_eligible(&asked));
	}
}

static void all_images(struct gmtpoolrequest r)
{
	for (size_t i = 0; i < COUNT(images); i++) {
		cl_image_desc desc = {.image_type = images[i]};
		struct gmt_image_call call = {.desc = &desc};
		struct gmt_request_for asked = {
			.context = &context, .flags = r.flags, .size = r.size, .host = r.contents ? &context : NULL, .image = &call,
		};
		r.largest = 0;
		r.array = i > 1;
		answer(r, gmt_plan_image_eligible(&asked));
	}
}

/* No call gives shared memory contents. */
static void pointers(struct gmtpoolrequest r)
{
	for (size_t list = 0; list < COUNT(lists); list++)
		for (size_t i = 0; i < COUNT(alignments); i++) {
			struct gmt_pointer_call call = {
				.kind = r.memory, .flags = r.flags, .alignment = alignments[i],
				.properties = (const cl_mem_properties_intel *)lists[list],
			};
			struct gmt_request_for asked = {.context = &context, .size = r.size, .pointer = &call};
			r.properties = list > 1; /* an empty list counts as none */
			r.alignment = alignments[i];
			answer(r, gmt_plan_pointer_eligible(&asked));
		}
}

static void with_flags(enum gmtmemory memory, uint64_t flags)
{
	for (size_t size = 0; size < COUNT(sizes); size++)
		for (int contents = 0; contents < 2; contents++) {
			struct gmtpoolrequest r = {
				.memory = memory, .flags = flags, .size = sizes[size], .largest = LARGEST, .smallest = SMALLEST,
				.contents = contents,
			};
			if (memory == GMT_MEMORY_BUFFER)
				buffers(r);
			else if (memory == GMT_MEMORY_IMAGE)
				all_images(r);
			else if (memory < GMT_MEMORY_SVM || memory > GMT_MEMORY_USM_SHARED)
				answer(r, false);
			else if (!contents)
				pointers(r);
		}
}

int main(void)
{
	gmt_session.config.copymin = SMALLEST;
	for (int memory = 0; memory <= GMT_MEMORY_EXTERNAL; memory++)
		for (size_t i = 0; i < COUNT(unknown); i++)
			for (uint64_t flags = 0; flags < 1u << 13; flags++)
				with_flags((enum gmtmemory)memory, flags | unknown[i]);
	return 0;
}
