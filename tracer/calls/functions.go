package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// How calls are told. See the package's comment for what is told at the entry.
const (
	entry    = 0
	returned = wire.ShapeReturn
	site     = wire.ShapeReturn | wire.ShapeStack // creates memory: where from?
	use      = wire.ShapeReturn | wire.ShapeUse
	copySite = use | wire.ShapeStack // copies memory: where from?
	entryUse = wire.ShapeUse
)

// The numbers of arguments and copies in shapes are counted from 1, as event.h wants them; in samples from 0.

// at copies bytes that an argument points to.
func at(argument, bytes uint8) wire.Copy { return wire.Copy{Argument: argument, Unit: bytes} }

// list copies as many handles, pointers or bytes as another argument says.
func list(argument, unit, count uint8) wire.Copy {
	return wire.Copy{Argument: argument, Unit: unit, Count: count}
}

// text copies what ends with NUL.
func text(argument uint8) wire.Copy { return wire.Copy{Argument: argument, Unit: 1, Text: 1} }

func copies(copies ...wire.Copy) (c [wire.CallCopies]wire.Copy) {
	copy(c[:], copies)
	return c
}

// Bytes of what arguments point to.
const (
	formatBytes     = 8  // cl_image_format
	descBytes       = 72 // cl_image_desc
	regionBytes     = 16 // cl_buffer_region
	cornerBytes     = 24 // size_t[3]: an origin or a region
	propertiesBytes = 64 // four of a list of properties, which has no count; none reads all of them
	handleBytes     = 8
)

// Functions are all functions that are told of; the number of one is its index. They are those of shim/hooks.def that mean
// anything without a pool, and those that the shim need not see because it asks the driver.
var Functions = []Function{
	{"clCreateContext", false, wire.Shape{Flags: returned, Error: 6}, (*Book).createContext},
	{"clCreateContextFromType", false, wire.Shape{Flags: returned, Error: 5}, (*Book).createContext},
	{"clRetainContext", false, wire.Shape{Flags: entry}, (*Book).retainContext},
	{"clReleaseContext", false, wire.Shape{Flags: entry}, (*Book).releaseContext},

	{"clCreateCommandQueue", false, wire.Shape{Flags: returned, Error: 4}, (*Book).createQueue},
	{"clCreateCommandQueueWithProperties", false, wire.Shape{Flags: returned, Error: 4, Copy: copies(at(3, propertiesBytes))}, (*Book).createQueueWithProperties},
	{"clCreateCommandQueueWithPropertiesKHR", true, wire.Shape{Flags: returned, Error: 4, Copy: copies(at(3, propertiesBytes))}, (*Book).createQueueWithProperties},
	{"clRetainCommandQueue", false, wire.Shape{Flags: entry}, (*Book).retainQueue},
	{"clReleaseCommandQueue", false, wire.Shape{Flags: entry}, (*Book).releaseQueue},

	{"clCreateBuffer", false, wire.Shape{Flags: site, Error: 5}, (*Book).createBuffer},
	{"clCreateBufferWithProperties", false, wire.Shape{Flags: site, Error: 6}, (*Book).createBufferWithProperties},
	{"clCreateBufferWithPropertiesINTEL", true, wire.Shape{Flags: site, Error: 6}, (*Book).createBufferWithProperties},
	{"clCreateSubBuffer", false, wire.Shape{Flags: site, Error: 5, Copy: copies(at(4, regionBytes))}, (*Book).createSubBuffer},
	{"clCreateImage", false, wire.Shape{Flags: site, Error: 6, Copy: copies(at(3, formatBytes), at(4, descBytes))}, (*Book).createImage},
	{"clCreateImageWithProperties", false, wire.Shape{Flags: site, Copy: copies(at(4, formatBytes), at(5, descBytes))}, (*Book).createImageWithProperties},
	{"clCreateImage2D", false, wire.Shape{Flags: site, Copy: copies(at(3, formatBytes))}, (*Book).createImage2D},
	{"clCreateImage3D", false, wire.Shape{Flags: site, Copy: copies(at(3, formatBytes))}, (*Book).createImage3D},
	{"clCreatePipe", false, wire.Shape{Flags: site, Error: 6}, (*Book).createPipe},
	{"clCreateFromGLBuffer", false, wire.Shape{Flags: site, Error: 4}, (*Book).createFromGL},
	{"clCreateFromGLRenderbuffer", false, wire.Shape{Flags: site, Error: 4}, (*Book).createFromGL},
	{"clCreateFromGLTexture", false, wire.Shape{Flags: site, Error: 6}, (*Book).createFromGL},
	{"clCreateFromGLTexture2D", false, wire.Shape{Flags: site, Error: 6}, (*Book).createFromGL},
	{"clCreateFromGLTexture3D", false, wire.Shape{Flags: site, Error: 6}, (*Book).createFromGL},
	{"clRetainMemObject", false, wire.Shape{Flags: entry}, (*Book).retainMemory},
	{"clReleaseMemObject", false, wire.Shape{Flags: entry}, (*Book).releaseMemory},

	{"clSVMAlloc", false, wire.Shape{Flags: site}, (*Book).allocateSVM},
	{"clSVMFree", false, wire.Shape{Flags: entry}, (*Book).freeOne},
	{"clEnqueueSVMFree", false, wire.Shape{Flags: entry, Copy: copies(list(3, handleBytes, 2))}, (*Book).freeAll},
	{"clHostMemAllocINTEL", true, wire.Shape{Flags: site, Error: 5}, (*Book).allocateHost},
	{"clDeviceMemAllocINTEL", true, wire.Shape{Flags: site, Error: 6}, (*Book).allocateDevice},
	{"clSharedMemAllocINTEL", true, wire.Shape{Flags: site, Error: 6}, (*Book).allocateShared},
	{"clMemFreeINTEL", true, wire.Shape{Flags: entry}, (*Book).freeOne},
	{"clMemBlockingFreeINTEL", true, wire.Shape{Flags: entry}, (*Book).freeOne},

	{"clCreateKernel", false, wire.Shape{Flags: returned, Error: 3, Copy: copies(text(2))}, (*Book).createKernel},
	{"clCreateKernelsInProgram", false, wire.Shape{Flags: returned, Copy: copies(list(3, handleBytes, 2), at(4, 4))}, (*Book).createKernels},
	{"clCloneKernel", false, wire.Shape{Flags: returned, Error: 2}, (*Book).cloneKernel},
	{"clRetainKernel", false, wire.Shape{Flags: entry}, (*Book).retainKernel},
	{"clReleaseKernel", false, wire.Shape{Flags: entry}, (*Book).releaseKernel},
	{"clSetKernelArg", false, wire.Shape{Flags: use, Object: 1, Like: 1, Copy: copies(list(4, 1, 3))}, (*Book).setArgument},
	{"clSetKernelArgSVMPointer", false, wire.Shape{Flags: use}, (*Book).setPointer},
	{"clSetKernelArgMemPointerINTEL", true, wire.Shape{Flags: use}, (*Book).setPointer},
	{"clCreateSampler", false, wire.Shape{Flags: use, Error: 5}, (*Book).createSampler},
	{"clCreateSamplerWithProperties", false, wire.Shape{Flags: use, Error: 3}, (*Book).createSampler},
	{"clRetainSampler", false, wire.Shape{Flags: entryUse}, (*Book).retainSampler},
	{"clReleaseSampler", false, wire.Shape{Flags: entryUse}, (*Book).releaseSampler},

	{"clEnqueueNDRangeKernel", false, wire.Shape{Flags: use}, (*Book).runKernel},
	{"clEnqueueTask", false, wire.Shape{Flags: use}, (*Book).runKernel},
	{"clEnqueueNativeKernel", false, wire.Shape{Flags: use, Copy: copies(list(6, handleBytes, 5))}, (*Book).runNative},
	{"clEnqueueReadBuffer", false, wire.Shape{Flags: use}, (*Book).readBuffer},
	{"clEnqueueReadBufferRect", false, wire.Shape{Flags: use, Copy: copies(at(6, cornerBytes), at(4, cornerBytes))}, (*Book).readRect},
	{"clEnqueueWriteBuffer", false, wire.Shape{Flags: use}, (*Book).writeBuffer},
	{"clEnqueueWriteBufferRect", false, wire.Shape{Flags: use, Copy: copies(at(6, cornerBytes), at(4, cornerBytes))}, (*Book).writeRect},
	{"clEnqueueCopyBuffer", false, wire.Shape{Flags: copySite}, (*Book).copyBuffer},
	{"clEnqueueCopyBufferRect", false, wire.Shape{Flags: copySite, Copy: copies(at(6, cornerBytes), at(4, cornerBytes))}, (*Book).copyRect},
	{"clEnqueueFillBuffer", false, wire.Shape{Flags: use}, (*Book).fillBuffer},
	{"clEnqueueReadImage", false, wire.Shape{Flags: use, Copy: copies(at(5, cornerBytes), at(4, cornerBytes))}, (*Book).readImage},
	{"clEnqueueWriteImage", false, wire.Shape{Flags: use, Copy: copies(at(5, cornerBytes), at(4, cornerBytes))}, (*Book).writeImage},
	{"clEnqueueCopyImage", false, wire.Shape{Flags: copySite, Copy: copies(at(6, cornerBytes))}, (*Book).copyImage},
	{"clEnqueueFillImage", false, wire.Shape{Flags: use, Copy: copies(at(5, cornerBytes), at(4, cornerBytes))}, (*Book).fillImage},
	{"clEnqueueCopyImageToBuffer", false, wire.Shape{Flags: copySite, Copy: copies(at(5, cornerBytes), at(4, cornerBytes))}, (*Book).copyImageToBuffer},
	{"clEnqueueCopyBufferToImage", false, wire.Shape{Flags: copySite, Copy: copies(at(6, cornerBytes), at(5, cornerBytes))}, (*Book).copyBufferToImage},
	{"clEnqueueMapBuffer", false, wire.Shape{Flags: use}, (*Book).mapBuffer},
	{"clEnqueueMapImage", false, wire.Shape{Flags: use, Copy: copies(at(6, cornerBytes), at(5, cornerBytes))}, (*Book).mapImage},
	{"clEnqueueUnmapMemObject", false, wire.Shape{Flags: use}, (*Book).unmap},
	{"clEnqueueMigrateMemObjects", false, wire.Shape{Flags: use, Copy: copies(list(3, handleBytes, 2))}, (*Book).migrate},
	{"clEnqueueMigrateMemObjectEXT", true, wire.Shape{Flags: use, Copy: copies(list(3, handleBytes, 2))}, (*Book).migrate},
	{"clEnqueueAcquireGLObjects", false, wire.Shape{Flags: use, Copy: copies(list(3, handleBytes, 2))}, (*Book).shareGL},
	{"clEnqueueReleaseGLObjects", false, wire.Shape{Flags: use, Copy: copies(list(3, handleBytes, 2))}, (*Book).shareGL},
	{"clEnqueueSVMMemcpy", false, wire.Shape{Flags: copySite}, (*Book).copyPointers},
	{"clEnqueueMemcpyINTEL", true, wire.Shape{Flags: copySite}, (*Book).copyPointers},
	{"clEnqueueSVMMemFill", false, wire.Shape{Flags: use}, (*Book).fillPointer},
	{"clEnqueueMemFillINTEL", true, wire.Shape{Flags: use}, (*Book).fillPointer},
	{"clEnqueueSVMMap", false, wire.Shape{Flags: use}, (*Book).mapPointer},
	{"clEnqueueSVMUnmap", false, wire.Shape{Flags: use}, (*Book).unmapPointer},
	{"clEnqueueSVMMigrateMem", false, wire.Shape{Flags: use, Copy: copies(list(3, handleBytes, 2), list(4, handleBytes, 2))}, (*Book).migratePointers},
	{"clEnqueueMigrateMemINTEL", true, wire.Shape{Flags: use}, (*Book).migratePointer},

	{"clFinish", false, wire.Shape{Flags: use}, (*Book).finish},
	{"clFlush", false, wire.Shape{Flags: entryUse}, (*Book).flush},
	{"clWaitForEvents", false, wire.Shape{Flags: use}, (*Book).wait},

	{"clGetExtensionFunctionAddress", false, wire.Shape{Flags: returned, Copy: copies(text(1))}, nil},
	{"clGetExtensionFunctionAddressForPlatform", false, wire.Shape{Flags: returned, Copy: copies(text(2))}, nil},
	{greeting, false, wire.Shape{Flags: entry}, nil},

	{"clEnqueueCommandBufferKHR", true, wire.Shape{Flags: use}, (*Book).replay},
}
