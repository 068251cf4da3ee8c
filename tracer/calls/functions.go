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

// copyList copies a list of handles, pointers or bytes, whose length another argument gives.
func copyList(argument, unit, count uint8) wire.Copy {
	return wire.Copy{Argument: argument, Unit: unit, Count: count}
}

// copyText copies a string that ends with NUL.
func copyText(argument uint8) wire.Copy { return wire.Copy{Argument: argument, Unit: 1, Text: 1} }

func copyRulesArray(copyRules ...wire.Copy) (c [wire.CallCopies]wire.Copy) {
	copy(c[:], copyRules)
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

// handlersOfPart makes handlers of the methods of one part of a tracker.
func handlersOfPart[P any](part func(*Tracker) *P) func(func(*P, *wire.Sample)) handler {
	return func(call func(*P, *wire.Sample)) handler {
		return func(t *Tracker, s *wire.Sample) { call(part(t), s) }
	}
}

var (
	onContexts = handlersOfPart(func(t *Tracker) *contexts { return &t.contexts })
	onQueues   = handlersOfPart(func(t *Tracker) *queues { return &t.queues })
	onEvents   = handlersOfPart(func(t *Tracker) *events { return &t.events })
	onPrograms = handlersOfPart(func(t *Tracker) *programs { return &t.programs })
	onKernels  = handlersOfPart(func(t *Tracker) *kernels { return &t.kernels })
	onSamplers = handlersOfPart(func(t *Tracker) *samplers { return &t.samplers })
	onMemories = handlersOfPart(func(t *Tracker) *memories { return &t.memories })
	onCreates  = handlersOfPart(func(t *Tracker) *creates { return &t.creates })
	onCommand  = handlersOfPart(func(t *Tracker) *command { return &t.command })
	onPointers = handlersOfPart(func(t *Tracker) *pointers { return &t.pointers })
)

// Functions are all functions that the eBPF program reports, by number. They are those of shim/base/hooks.def that matter
// without a pool, and those that the shim need not hook because it asks the driver.
var Functions = []Function{
	{"clCreateContext", false, wire.Shape{Flags: createSite, Error: 6}, onContexts((*contexts).handleCreate)},
	{"clCreateContextFromType", false, wire.Shape{Flags: createSite, Error: 5}, onContexts((*contexts).handleCreate)},
	{"clRetainContext", false, wire.Shape{Flags: entry}, onContexts((*contexts).handleRetain)},
	{"clReleaseContext", false, wire.Shape{Flags: entry}, onContexts((*contexts).handleRelease)},

	{"clCreateCommandQueue", false, wire.Shape{Flags: createSite, Error: 4}, onQueues((*queues).handleCreate)},
	{"clCreateCommandQueueWithProperties", false, wire.Shape{Flags: createSite, Error: 4,
		Copy: copyRulesArray(copyArgument(3, propertiesBytes))}, onQueues((*queues).handleCreateWithProperties)},
	{"clCreateCommandQueueWithPropertiesKHR", true, wire.Shape{Flags: createSite, Error: 4,
		Copy: copyRulesArray(copyArgument(3, propertiesBytes))}, onQueues((*queues).handleCreateWithProperties)},
	{"clRetainCommandQueue", false, wire.Shape{Flags: entry}, onQueues((*queues).handleRetain)},
	{"clReleaseCommandQueue", false, wire.Shape{Flags: entry}, onQueues((*queues).handleRelease)},

	{"clCreateBuffer", false, wire.Shape{Flags: createSite, Error: 5}, onCreates((*creates).handleBuffer)},
	{"clCreateBufferWithProperties", false, wire.Shape{Flags: createSite, Error: 6}, onCreates((*creates).handleBufferWithProperties)},
	{"clCreateBufferWithPropertiesINTEL", true, wire.Shape{Flags: createSite, Error: 6}, onCreates((*creates).handleBufferWithProperties)},
	{"clCreateSubBuffer", false, wire.Shape{Flags: createSite, Error: 5, Copy: copyRulesArray(copyArgument(4, regionBytes))},
		onCreates((*creates).handleSubBuffer)},
	{"clCreateImage", false, wire.Shape{Flags: createSite, Error: 6, Copy: copyRulesArray(copyArgument(3, formatBytes), copyArgument(4,
		descBytes))}, onCreates((*creates).handleImage)},
	{"clCreateImageWithProperties", false, wire.Shape{Flags: createSite, Copy: copyRulesArray(copyArgument(4, formatBytes), copyArgument(5,
		descBytes))}, onCreates((*creates).handleImageWithProperties)},
	{"clCreateImage2D", false, wire.Shape{Flags: createSite, Copy: copyRulesArray(copyArgument(3, formatBytes))}, onCreates((*creates).handleImage2D)},
	{"clCreateImage3D", false, wire.Shape{Flags: createSite, Copy: copyRulesArray(copyArgument(3, formatBytes))}, onCreates((*creates).handleImage3D)},
	{"clCreatePipe", false, wire.Shape{Flags: createSite, Error: 6}, onCreates((*creates).handlePipe)},
	{"clCreateFromGLBuffer", false, wire.Shape{Flags: createSite, Error: 4}, onCreates((*creates).handleFromGL)},
	{"clCreateFromGLRenderbuffer", false, wire.Shape{Flags: createSite, Error: 4}, onCreates((*creates).handleFromGL)},
	{"clCreateFromGLTexture", false, wire.Shape{Flags: createSite, Error: 6}, onCreates((*creates).handleFromGL)},
	{"clCreateFromGLTexture2D", false, wire.Shape{Flags: createSite, Error: 6}, onCreates((*creates).handleFromGL)},
	{"clCreateFromGLTexture3D", false, wire.Shape{Flags: createSite, Error: 6}, onCreates((*creates).handleFromGL)},
	{"clRetainMemObject", false, wire.Shape{Flags: entry}, onMemories((*memories).handleRetain)},
	{"clReleaseMemObject", false, wire.Shape{Flags: entry}, onMemories((*memories).handleRelease)},

	{"clSVMAlloc", false, wire.Shape{Flags: createSite}, onPointers((*pointers).handleAllocateSVM)},
	{"clSVMFree", false, wire.Shape{Flags: entry}, onPointers((*pointers).handleFree)},
	{"clEnqueueSVMFree", false, wire.Shape{Flags: entry, Copy: copyRulesArray(copyList(3, handleBytes, 2))}, onPointers((*pointers).handleFreeAll)},
	{"clHostMemAllocINTEL", true, wire.Shape{Flags: createSite, Error: 5}, onPointers((*pointers).handleAllocateHost)},
	{"clDeviceMemAllocINTEL", true, wire.Shape{Flags: createSite, Error: 6}, onPointers((*pointers).handleAllocateDevice)},
	{"clSharedMemAllocINTEL", true, wire.Shape{Flags: createSite, Error: 6}, onPointers((*pointers).handleAllocateShared)},
	{"clMemFreeINTEL", true, wire.Shape{Flags: entry}, onPointers((*pointers).handleFree)},
	{"clMemBlockingFreeINTEL", true, wire.Shape{Flags: entry}, onPointers((*pointers).handleFree)},

	{"clCreateProgramWithSource", false, wire.Shape{Flags: createSite, Error: 5}, onPrograms((*programs).handleCreate)},
	{"clCreateProgramWithBinary", false, wire.Shape{Flags: createSite}, onPrograms((*programs).handleCreate)},
	{"clCreateProgramWithBuiltInKernels", false, wire.Shape{Flags: createSite, Error: 5}, onPrograms((*programs).handleCreate)},
	{"clCreateProgramWithIL", false, wire.Shape{Flags: createSite, Error: 4}, onPrograms((*programs).handleCreate)},
	{"clLinkProgram", false, wire.Shape{Flags: createSite}, onPrograms((*programs).handleCreate)},
	{"clRetainProgram", false, wire.Shape{Flags: entry}, onPrograms((*programs).handleRetain)},
	{"clReleaseProgram", false, wire.Shape{Flags: entry}, onPrograms((*programs).handleRelease)},
	{"clCreateKernel", false, wire.Shape{Flags: createSite, Error: 3, Copy: copyRulesArray(copyText(2))}, onKernels((*kernels).handleCreate)},
	{"clCreateKernelsInProgram", false, wire.Shape{Flags: createSite, Copy: copyRulesArray(copyList(3, handleBytes, 2), copyArgument(4,
		4))}, onKernels((*kernels).handleCreateKernels)},
	{"clCloneKernel", false, wire.Shape{Flags: createSite, Error: 2}, onKernels((*kernels).handleClone)},
	{"clRetainKernel", false, wire.Shape{Flags: entry}, onKernels((*kernels).handleRetain)},
	{"clReleaseKernel", false, wire.Shape{Flags: entry}, onKernels((*kernels).handleRelease)},
	{"clSetKernelArg", false, wire.Shape{Flags: use, Object: 1, Like: 1, Copy: copyRulesArray(copyList(4, 1, 3))}, onKernels((*kernels).handleSetArgument)},
	{"clSetKernelArgSVMPointer", false, wire.Shape{Flags: use}, onKernels((*kernels).handleSetPointer)},
	{"clSetKernelArgMemPointerINTEL", true, wire.Shape{Flags: use}, onKernels((*kernels).handleSetPointer)},
	{"clCreateSampler", false, wire.Shape{Flags: use, Error: 5}, onSamplers((*samplers).handleCreate)},
	{"clCreateSamplerWithProperties", false, wire.Shape{Flags: use, Error: 3}, onSamplers((*samplers).handleCreate)},
	{"clRetainSampler", false, wire.Shape{Flags: entryUse}, onSamplers((*samplers).handleRetain)},
	{"clReleaseSampler", false, wire.Shape{Flags: entryUse}, onSamplers((*samplers).handleRelease)},

	{"clEnqueueNDRangeKernel", false, wire.Shape{Flags: use, Event: 9}, onCommand((*command).handleRunKernel)},
	{"clEnqueueTask", false, wire.Shape{Flags: use, Event: 5}, onCommand((*command).handleRunKernel)},
	{"clEnqueueNativeKernel", false, wire.Shape{Flags: use, Event: 10, Copy: copyRulesArray(copyList(6, handleBytes, 5))},
		onCommand((*command).handleRunNative)},
	{"clEnqueueReadBuffer", false, wire.Shape{Flags: use, Event: 9}, onCommand(handlerOfBufferTransfer(wire.CommandRead, reads, 3, 2))},
	{"clEnqueueReadBufferRect", false, wire.Shape{Flags: use, Event: 14, Copy: copyRulesArray(copyArgument(6, cornerBytes), copyArgument(4,
		cornerBytes))}, onCommand(handlerOfRectTransfer(wire.CommandRead, reads))},
	{"clEnqueueWriteBuffer", false, wire.Shape{Flags: use, Event: 9}, onCommand(handlerOfBufferTransfer(wire.CommandWrite, writes, 3, 0))},
	{"clEnqueueWriteBufferRect", false, wire.Shape{Flags: use, Event: 14, Copy: copyRulesArray(copyArgument(6, cornerBytes),
		copyArgument(4, cornerBytes))}, onCommand(handlerOfRectTransfer(wire.CommandWrite, writes))},
	{"clEnqueueCopyBuffer", false, wire.Shape{Flags: copySite, Event: 9}, onCommand((*command).handleCopyBuffer)},
	{"clEnqueueCopyBufferRect", false, wire.Shape{Flags: copySite, Event: 13, Copy: copyRulesArray(copyArgument(6, cornerBytes),
		copyArgument(4, cornerBytes))}, onCommand((*command).handleCopyRect)},
	{"clEnqueueFillBuffer", false, wire.Shape{Flags: use, Event: 9}, onCommand(handlerOfBufferTransfer(wire.CommandFill, writes, 4, 0))},
	{"clEnqueueReadImage", false, wire.Shape{Flags: use, Event: 11, Copy: copyRulesArray(copyArgument(5, cornerBytes), copyArgument(4,
		cornerBytes))}, onCommand(handlerOfImageTransfer(wire.CommandRead, reads))},
	{"clEnqueueWriteImage", false, wire.Shape{Flags: use, Event: 11, Copy: copyRulesArray(copyArgument(5, cornerBytes), copyArgument(4,
		cornerBytes))}, onCommand(handlerOfImageTransfer(wire.CommandWrite, writes))},
	{"clEnqueueCopyImage", false, wire.Shape{Flags: copySite, Event: 9, Copy: copyRulesArray(copyArgument(6, cornerBytes))},
		onCommand((*command).handleCopyImage)},
	{"clEnqueueFillImage", false, wire.Shape{Flags: use, Event: 8, Copy: copyRulesArray(copyArgument(5, cornerBytes), copyArgument(4,
		cornerBytes))}, onCommand(handlerOfImageTransfer(wire.CommandFill, writes))},
	{"clEnqueueCopyImageToBuffer", false, wire.Shape{Flags: copySite, Event: 9, Copy: copyRulesArray(copyArgument(5, cornerBytes),
		copyArgument(4, cornerBytes))}, onCommand((*command).handleCopyImageToBuffer)},
	{"clEnqueueCopyBufferToImage", false, wire.Shape{Flags: copySite, Event: 9, Copy: copyRulesArray(copyArgument(6, cornerBytes),
		copyArgument(5, cornerBytes))}, onCommand((*command).handleCopyBufferToImage)},
	{"clEnqueueMapBuffer", false, wire.Shape{Flags: use, Event: 9}, onCommand((*command).handleMapBuffer)},
	{"clEnqueueMapImage", false, wire.Shape{Flags: use, Event: 11, Copy: copyRulesArray(copyArgument(6, cornerBytes), copyArgument(5,
		cornerBytes))}, onCommand((*command).handleMapImage)},
	{"clEnqueueUnmapMemObject", false, wire.Shape{Flags: use, Event: 6}, onCommand((*command).handleUnmap)},
	{"clEnqueueMigrateMemObjects", false, wire.Shape{Flags: use, Event: 7, Copy: copyRulesArray(copyList(3, handleBytes, 2))},
		onCommand((*command).handleMigrate)},
	{"clEnqueueMigrateMemObjectEXT", true, wire.Shape{Flags: use, Event: 7, Copy: copyRulesArray(copyList(3, handleBytes, 2))},
		onCommand((*command).handleMigrate)},
	{"clEnqueueAcquireGLObjects", false, wire.Shape{Flags: use, Event: 6, Copy: copyRulesArray(copyList(3, handleBytes, 2))},
		onCommand((*command).handleAcquireGL)},
	{"clEnqueueReleaseGLObjects", false, wire.Shape{Flags: use, Event: 6, Copy: copyRulesArray(copyList(3, handleBytes, 2))},
		onCommand((*command).handleReleaseGL)},
	{"clEnqueueSVMMemcpy", false, wire.Shape{Flags: copySite, Event: 8}, onPointers((*pointers).handleCopy)},
	{"clEnqueueMemcpyINTEL", true, wire.Shape{Flags: copySite, Event: 8}, onPointers((*pointers).handleCopy)},
	{"clEnqueueSVMMemFill", false, wire.Shape{Flags: use, Event: 8}, onPointers((*pointers).handleFill)},
	{"clEnqueueMemFillINTEL", true, wire.Shape{Flags: use, Event: 8}, onPointers((*pointers).handleFill)},
	{"clEnqueueSVMMap", false, wire.Shape{Flags: use, Event: 8}, onPointers((*pointers).handleMap)},
	{"clEnqueueSVMUnmap", false, wire.Shape{Flags: use, Event: 5}, onPointers((*pointers).handleUnmap)},
	{"clEnqueueSVMMigrateMem", false, wire.Shape{Flags: use, Event: 8, Copy: copyRulesArray(copyList(3, handleBytes, 2), copyList(4,
		handleBytes, 2))}, onPointers((*pointers).handleMigrateAll)},
	{"clEnqueueMigrateMemINTEL", true, wire.Shape{Flags: use, Event: 7}, onPointers((*pointers).handleMigrateUSM)},

	{"clEnqueueMarker", false, wire.Shape{Flags: use, Event: 2}, onEvents((*events).ignoreCommand)},
	{"clEnqueueMarkerWithWaitList", false, wire.Shape{Flags: use, Event: 4}, onEvents((*events).ignoreCommand)},
	{"clEnqueueBarrierWithWaitList", false, wire.Shape{Flags: use, Event: 4}, onEvents((*events).ignoreCommand)},
	{"clCreateUserEvent", false, wire.Shape{Flags: use, Error: 2}, onEvents((*events).handleCreate)},
	{"clRetainEvent", false, wire.Shape{Flags: entryUse}, onEvents((*events).handleRetain)},
	{"clReleaseEvent", false, wire.Shape{Flags: entryUse}, onEvents((*events).handleRelease)},

	{"clFinish", false, wire.Shape{Flags: use}, onQueues((*queues).handleFinish)},
	{"clFlush", false, wire.Shape{Flags: entryUse}, onQueues((*queues).handleFlush)},
	{"clWaitForEvents", false, wire.Shape{Flags: use}, onQueues((*queues).handleWaitForEvents)},

	{"clGetExtensionFunctionAddress", false, wire.Shape{Flags: returned, Copy: copyRulesArray(copyText(1))}, nil},
	{"clGetExtensionFunctionAddressForPlatform", false, wire.Shape{Flags: returned, Copy: copyRulesArray(copyText(2))}, nil},
	{platformQuery, false, wire.Shape{Flags: entry}, nil},

	{"clEnqueueCommandBufferKHR", true, wire.Shape{Flags: use, Event: 6}, onCommand((*command).handleCommandBuffer)},
}
