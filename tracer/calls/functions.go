package calls

import "codeberg.org/gpumemtop/gpumemtop/internal/wire"

// When calls are reported, and with what. See the package's comment.
const (
	entry      = 0
	returned   = wire.ShapeReturn
	createSite = wire.ShapeReturn | wire.ShapeStack // creates memory or another object, so that its stack matters
	use        = wire.ShapeReturn | wire.ShapeUse
	copySite   = use | wire.ShapeStack // copies memory, so that its stack matters
	entryUse   = wire.ShapeUse
)

// Shapes count arguments and copies from 1, as event.h does, samples from 0.

// copyArgument copies bytes that an argument points to.
func copyArgument(argument, bytes uint8) wire.Copy { return wire.Copy{Argument: argument, Unit: bytes} }

// list copies a list of handles, pointers or bytes, whose length another argument gives.
func list(argument, unit, count uint8) wire.Copy {
	return wire.Copy{Argument: argument, Unit: unit, Count: count}
}

// text copies a string that ends with NUL.
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
	propertiesBytes = 64 // four properties: a list has no count, and no call reads all of it
	handleBytes     = 8
)

// handlersOf makes handlers of the methods of one part of a tracker.
func handlersOf[P any](part func(*Tracker) *P) func(func(*P, *wire.Sample)) handler {
	return func(call func(*P, *wire.Sample)) handler {
		return func(t *Tracker, s *wire.Sample) { call(part(t), s) }
	}
}

var (
	onContexts = handlersOf(func(t *Tracker) *contexts { return &t.contexts })
	onQueues   = handlersOf(func(t *Tracker) *queues { return &t.queues })
	onEvents   = handlersOf(func(t *Tracker) *events { return &t.events })
	onPrograms = handlersOf(func(t *Tracker) *programs { return &t.programs })
	onKernels  = handlersOf(func(t *Tracker) *kernels { return &t.kernels })
	onSamplers = handlersOf(func(t *Tracker) *samplers { return &t.samplers })
	onMemories = handlersOf(func(t *Tracker) *memories { return &t.memories })
	onCreates  = handlersOf(func(t *Tracker) *creates { return &t.creates })
	onCommand  = handlersOf(func(t *Tracker) *command { return &t.command })
	onPointers = handlersOf(func(t *Tracker) *pointers { return &t.pointers })
)

// Functions are all functions that the eBPF program reports, by number. They are those of shim/base/hooks.def that matter
// without a pool, and those that the shim need not hook because it asks the driver.
var Functions = []Function{
	{"clCreateContext", false, wire.Shape{Flags: createSite, Error: 6}, onContexts((*contexts).create)},
	{"clCreateContextFromType", false, wire.Shape{Flags: createSite, Error: 5}, onContexts((*contexts).create)},
	{"clRetainContext", false, wire.Shape{Flags: entry}, onContexts((*contexts).retain)},
	{"clReleaseContext", false, wire.Shape{Flags: entry}, onContexts((*contexts).release)},

	{"clCreateCommandQueue", false, wire.Shape{Flags: createSite, Error: 4}, onQueues((*queues).create)},
	{"clCreateCommandQueueWithProperties", false, wire.Shape{Flags: createSite, Error: 4, Copy: copies(copyArgument(3, propertiesBytes))}, onQueues((*queues).createWithProperties)},
	{"clCreateCommandQueueWithPropertiesKHR", true, wire.Shape{Flags: createSite, Error: 4, Copy: copies(copyArgument(3, propertiesBytes))}, onQueues((*queues).createWithProperties)},
	{"clRetainCommandQueue", false, wire.Shape{Flags: entry}, onQueues((*queues).retain)},
	{"clReleaseCommandQueue", false, wire.Shape{Flags: entry}, onQueues((*queues).release)},

	{"clCreateBuffer", false, wire.Shape{Flags: createSite, Error: 5}, onCreates((*creates).buffer)},
	{"clCreateBufferWithProperties", false, wire.Shape{Flags: createSite, Error: 6}, onCreates((*creates).bufferWithProperties)},
	{"clCreateBufferWithPropertiesINTEL", true, wire.Shape{Flags: createSite, Error: 6}, onCreates((*creates).bufferWithProperties)},
	{"clCreateSubBuffer", false, wire.Shape{Flags: createSite, Error: 5, Copy: copies(copyArgument(4, regionBytes))}, onCreates((*creates).subBuffer)},
	{"clCreateImage", false, wire.Shape{Flags: createSite, Error: 6, Copy: copies(copyArgument(3, formatBytes), copyArgument(4, descBytes))}, onCreates((*creates).image)},
	{"clCreateImageWithProperties", false, wire.Shape{Flags: createSite, Copy: copies(copyArgument(4, formatBytes), copyArgument(5, descBytes))}, onCreates((*creates).imageWithProperties)},
	{"clCreateImage2D", false, wire.Shape{Flags: createSite, Copy: copies(copyArgument(3, formatBytes))}, onCreates((*creates).image2D)},
	{"clCreateImage3D", false, wire.Shape{Flags: createSite, Copy: copies(copyArgument(3, formatBytes))}, onCreates((*creates).image3D)},
	{"clCreatePipe", false, wire.Shape{Flags: createSite, Error: 6}, onCreates((*creates).pipe)},
	{"clCreateFromGLBuffer", false, wire.Shape{Flags: createSite, Error: 4}, onCreates((*creates).fromGL)},
	{"clCreateFromGLRenderbuffer", false, wire.Shape{Flags: createSite, Error: 4}, onCreates((*creates).fromGL)},
	{"clCreateFromGLTexture", false, wire.Shape{Flags: createSite, Error: 6}, onCreates((*creates).fromGL)},
	{"clCreateFromGLTexture2D", false, wire.Shape{Flags: createSite, Error: 6}, onCreates((*creates).fromGL)},
	{"clCreateFromGLTexture3D", false, wire.Shape{Flags: createSite, Error: 6}, onCreates((*creates).fromGL)},
	{"clRetainMemObject", false, wire.Shape{Flags: entry}, onMemories((*memories).retain)},
	{"clReleaseMemObject", false, wire.Shape{Flags: entry}, onMemories((*memories).release)},

	{"clSVMAlloc", false, wire.Shape{Flags: createSite}, onPointers((*pointers).allocateSVM)},
	{"clSVMFree", false, wire.Shape{Flags: entry}, onPointers((*pointers).freeOne)},
	{"clEnqueueSVMFree", false, wire.Shape{Flags: entry, Copy: copies(list(3, handleBytes, 2))}, onPointers((*pointers).freeAll)},
	{"clHostMemAllocINTEL", true, wire.Shape{Flags: createSite, Error: 5}, onPointers((*pointers).allocateHost)},
	{"clDeviceMemAllocINTEL", true, wire.Shape{Flags: createSite, Error: 6}, onPointers((*pointers).allocateDevice)},
	{"clSharedMemAllocINTEL", true, wire.Shape{Flags: createSite, Error: 6}, onPointers((*pointers).allocateShared)},
	{"clMemFreeINTEL", true, wire.Shape{Flags: entry}, onPointers((*pointers).freeOne)},
	{"clMemBlockingFreeINTEL", true, wire.Shape{Flags: entry}, onPointers((*pointers).freeOne)},

	{"clCreateProgramWithSource", false, wire.Shape{Flags: createSite, Error: 5}, onPrograms((*programs).create)},
	{"clCreateProgramWithBinary", false, wire.Shape{Flags: createSite}, onPrograms((*programs).create)},
	{"clCreateProgramWithBuiltInKernels", false, wire.Shape{Flags: createSite, Error: 5}, onPrograms((*programs).create)},
	{"clCreateProgramWithIL", false, wire.Shape{Flags: createSite, Error: 4}, onPrograms((*programs).create)},
	{"clLinkProgram", false, wire.Shape{Flags: createSite}, onPrograms((*programs).create)},
	{"clRetainProgram", false, wire.Shape{Flags: entry}, onPrograms((*programs).retain)},
	{"clReleaseProgram", false, wire.Shape{Flags: entry}, onPrograms((*programs).release)},
	{"clCreateKernel", false, wire.Shape{Flags: createSite, Error: 3, Copy: copies(text(2))}, onKernels((*kernels).create)},
	{"clCreateKernelsInProgram", false, wire.Shape{Flags: createSite, Copy: copies(list(3, handleBytes, 2), copyArgument(4, 4))}, onKernels((*kernels).createAll)},
	{"clCloneKernel", false, wire.Shape{Flags: createSite, Error: 2}, onKernels((*kernels).clone)},
	{"clRetainKernel", false, wire.Shape{Flags: entry}, onKernels((*kernels).retain)},
	{"clReleaseKernel", false, wire.Shape{Flags: entry}, onKernels((*kernels).release)},
	{"clSetKernelArg", false, wire.Shape{Flags: use, Object: 1, Like: 1, Copy: copies(list(4, 1, 3))}, onKernels((*kernels).setArgument)},
	{"clSetKernelArgSVMPointer", false, wire.Shape{Flags: use}, onKernels((*kernels).setPointer)},
	{"clSetKernelArgMemPointerINTEL", true, wire.Shape{Flags: use}, onKernels((*kernels).setPointer)},
	{"clCreateSampler", false, wire.Shape{Flags: use, Error: 5}, onSamplers((*samplers).create)},
	{"clCreateSamplerWithProperties", false, wire.Shape{Flags: use, Error: 3}, onSamplers((*samplers).create)},
	{"clRetainSampler", false, wire.Shape{Flags: entryUse}, onSamplers((*samplers).retain)},
	{"clReleaseSampler", false, wire.Shape{Flags: entryUse}, onSamplers((*samplers).release)},

	{"clEnqueueNDRangeKernel", false, wire.Shape{Flags: use, Event: 9}, onCommand((*command).runKernel)},
	{"clEnqueueTask", false, wire.Shape{Flags: use, Event: 5}, onCommand((*command).runKernel)},
	{"clEnqueueNativeKernel", false, wire.Shape{Flags: use, Event: 10, Copy: copies(list(6, handleBytes, 5))}, onCommand((*command).runNative)},
	{"clEnqueueReadBuffer", false, wire.Shape{Flags: use, Event: 9}, onCommand(bufferTransfer(wire.CommandRead, reads, 3, 2))},
	{"clEnqueueReadBufferRect", false, wire.Shape{Flags: use, Event: 14, Copy: copies(copyArgument(6, cornerBytes), copyArgument(4, cornerBytes))}, onCommand(rectTransfer(wire.CommandRead, reads))},
	{"clEnqueueWriteBuffer", false, wire.Shape{Flags: use, Event: 9}, onCommand(bufferTransfer(wire.CommandWrite, writes, 3, 0))},
	{"clEnqueueWriteBufferRect", false, wire.Shape{Flags: use, Event: 14, Copy: copies(copyArgument(6, cornerBytes), copyArgument(4, cornerBytes))}, onCommand(rectTransfer(wire.CommandWrite, writes))},
	{"clEnqueueCopyBuffer", false, wire.Shape{Flags: copySite, Event: 9}, onCommand((*command).copyBuffer)},
	{"clEnqueueCopyBufferRect", false, wire.Shape{Flags: copySite, Event: 13, Copy: copies(copyArgument(6, cornerBytes), copyArgument(4, cornerBytes))}, onCommand((*command).copyRect)},
	{"clEnqueueFillBuffer", false, wire.Shape{Flags: use, Event: 9}, onCommand(bufferTransfer(wire.CommandFill, writes, 4, 0))},
	{"clEnqueueReadImage", false, wire.Shape{Flags: use, Event: 11, Copy: copies(copyArgument(5, cornerBytes), copyArgument(4, cornerBytes))}, onCommand(imageTransfer(wire.CommandRead, reads))},
	{"clEnqueueWriteImage", false, wire.Shape{Flags: use, Event: 11, Copy: copies(copyArgument(5, cornerBytes), copyArgument(4, cornerBytes))}, onCommand(imageTransfer(wire.CommandWrite, writes))},
	{"clEnqueueCopyImage", false, wire.Shape{Flags: copySite, Event: 9, Copy: copies(copyArgument(6, cornerBytes))}, onCommand((*command).copyImage)},
	{"clEnqueueFillImage", false, wire.Shape{Flags: use, Event: 8, Copy: copies(copyArgument(5, cornerBytes), copyArgument(4, cornerBytes))}, onCommand(imageTransfer(wire.CommandFill, writes))},
	{"clEnqueueCopyImageToBuffer", false, wire.Shape{Flags: copySite, Event: 9, Copy: copies(copyArgument(5, cornerBytes), copyArgument(4, cornerBytes))}, onCommand((*command).copyImageToBuffer)},
	{"clEnqueueCopyBufferToImage", false, wire.Shape{Flags: copySite, Event: 9, Copy: copies(copyArgument(6, cornerBytes), copyArgument(5, cornerBytes))}, onCommand((*command).copyBufferToImage)},
	{"clEnqueueMapBuffer", false, wire.Shape{Flags: use, Event: 9}, onCommand((*command).mapBuffer)},
	{"clEnqueueMapImage", false, wire.Shape{Flags: use, Event: 11, Copy: copies(copyArgument(6, cornerBytes), copyArgument(5, cornerBytes))}, onCommand((*command).mapImage)},
	{"clEnqueueUnmapMemObject", false, wire.Shape{Flags: use, Event: 6}, onCommand((*command).unmap)},
	{"clEnqueueMigrateMemObjects", false, wire.Shape{Flags: use, Event: 7, Copy: copies(list(3, handleBytes, 2))}, onCommand((*command).migrate)},
	{"clEnqueueMigrateMemObjectEXT", true, wire.Shape{Flags: use, Event: 7, Copy: copies(list(3, handleBytes, 2))}, onCommand((*command).migrate)},
	{"clEnqueueAcquireGLObjects", false, wire.Shape{Flags: use, Event: 6, Copy: copies(list(3, handleBytes, 2))}, onCommand((*command).acquireGL)},
	{"clEnqueueReleaseGLObjects", false, wire.Shape{Flags: use, Event: 6, Copy: copies(list(3, handleBytes, 2))}, onCommand((*command).releaseGL)},
	{"clEnqueueSVMMemcpy", false, wire.Shape{Flags: copySite, Event: 8}, onPointers((*pointers).copy)},
	{"clEnqueueMemcpyINTEL", true, wire.Shape{Flags: copySite, Event: 8}, onPointers((*pointers).copy)},
	{"clEnqueueSVMMemFill", false, wire.Shape{Flags: use, Event: 8}, onPointers((*pointers).fill)},
	{"clEnqueueMemFillINTEL", true, wire.Shape{Flags: use, Event: 8}, onPointers((*pointers).fill)},
	{"clEnqueueSVMMap", false, wire.Shape{Flags: use, Event: 8}, onPointers((*pointers).mapRange)},
	{"clEnqueueSVMUnmap", false, wire.Shape{Flags: use, Event: 5}, onPointers((*pointers).unmap)},
	{"clEnqueueSVMMigrateMem", false, wire.Shape{Flags: use, Event: 8, Copy: copies(list(3, handleBytes, 2), list(4, handleBytes, 2))}, onPointers((*pointers).migrateAll)},
	{"clEnqueueMigrateMemINTEL", true, wire.Shape{Flags: use, Event: 7}, onPointers((*pointers).migrate)},

	{"clEnqueueMarker", false, wire.Shape{Flags: use, Event: 2}, onEvents((*events).ignoreCommand)},
	{"clEnqueueMarkerWithWaitList", false, wire.Shape{Flags: use, Event: 4}, onEvents((*events).ignoreCommand)},
	{"clEnqueueBarrierWithWaitList", false, wire.Shape{Flags: use, Event: 4}, onEvents((*events).ignoreCommand)},
	{"clCreateUserEvent", false, wire.Shape{Flags: use, Error: 2}, onEvents((*events).create)},
	{"clRetainEvent", false, wire.Shape{Flags: entryUse}, onEvents((*events).retain)},
	{"clReleaseEvent", false, wire.Shape{Flags: entryUse}, onEvents((*events).release)},

	{"clFinish", false, wire.Shape{Flags: use}, onQueues((*queues).finish)},
	{"clFlush", false, wire.Shape{Flags: entryUse}, onQueues((*queues).flush)},
	{"clWaitForEvents", false, wire.Shape{Flags: use}, onQueues((*queues).wait)},

	{"clGetExtensionFunctionAddress", false, wire.Shape{Flags: returned, Copy: copies(text(1))}, nil},
	{"clGetExtensionFunctionAddressForPlatform", false, wire.Shape{Flags: returned, Copy: copies(text(2))}, nil},
	{platformQuery, false, wire.Shape{Flags: entry}, nil},

	{"clEnqueueCommandBufferKHR", true, wire.Shape{Flags: use, Event: 6}, onCommand((*command).replay)},
}
