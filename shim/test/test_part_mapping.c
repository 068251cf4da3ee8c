/* test_part_mapping.c: mappings of parts, in drivers that look for them in the slab. */
#include "carved.h"

static void *map(cl_mem buffer, size_t offset)
{
	cl_int err = 1;
	void *pointer = clEnqueueMapBuffer(world.queue, buffer, CL_TRUE, CL_MAP_WRITE, offset, 16, 0, NULL, NULL, &err);
	OK(err);
	return pointer;
}

static cl_int unmap(cl_mem buffer, void *pointer)
{
	return clEnqueueUnmapMemObject(world.queue, buffer, pointer, 0, NULL, NULL);
}

static cl_mem child_of(cl_mem buffer)
{
	const cl_buffer_region region = {ALIGNMENT, ALIGNMENT};
	cl_int err = 1;
	cl_mem child = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	OK(err);
	return child;
}

TEST(a_mapping_ends_only_in_its_own_part)
{
	fake.countparts = 1;
	begin_carved((struct options){0});
	cl_mem first = new_buffer(1000), second = new_buffer(1000), child = child_of(second);
	EQUAL(unmap(first, &world), CL_INVALID_VALUE); /* nothing of it was ever mapped */
	void *ofirst = map(first, 0), *ofsecond = map(second, 0), *ofchild = map(child, 0);
	EQUAL(unmap(first, ofsecond), CL_INVALID_VALUE);
	EQUAL(unmap(first, ofchild), CL_INVALID_VALUE);
	EQUAL(unmap(child, ofirst), CL_INVALID_VALUE);
	EQUAL(asked(first, CL_MEM_MAP_COUNT), 1);
	EQUAL(asked(second, CL_MEM_MAP_COUNT), 2);
	OK(unmap(first, ofirst));
	EQUAL(unmap(first, ofirst), CL_INVALID_VALUE);
	OK(unmap(second, ofchild)); /* as the driver allows */
	OK(unmap(child, ofsecond));
	EQUAL(unmap(second, ofsecond), CL_INVALID_VALUE);
	EQUAL(asked(second, CL_MEM_MAP_COUNT), 0);
	OK(clReleaseMemObject(child));
	EQUAL(release(first), GMT_OUTCOME_CACHED);
	EQUAL(release(second), GMT_OUTCOME_CACHED);
	OK(clFinish(world.queue));
	end_clean();
}

TEST(any_number_of_mappings_of_a_part)
{
	enum { MAPPINGS = 4 * GMT_MAPPINGS };
	fake.countparts = 1;
	begin_carved((struct options){0});
	cl_mem buffer = new_buffer(1000), other = new_buffer(1000);
	void *pointer[MAPPINGS], *others = map(other, 0);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < MAPPINGS; i++)
			pointer[i] = map(buffer, i / 2); /* each twice */
		for (size_t i = 0; i < MAPPINGS; i++)
			OK(unmap(buffer, pointer[round ? MAPPINGS - 1 - i : i]));
		for (size_t i = 0; i < MAPPINGS; i++)
			EQUAL(unmap(buffer, pointer[i]), CL_INVALID_VALUE);
		EQUAL(unmap(buffer, others), CL_INVALID_VALUE);
	}
	OK(unmap(other, others));
	OK(clReleaseMemObject(buffer));
	OK(clReleaseMemObject(other));
	OK(clFinish(world.queue));
	end_clean();
}
