package wire

import "strconv"

// Statuses of calls that fail for lack of memory.
const (
	MemObjectAllocationFailure = -4
	OutOfResources             = -5
	OutOfHostMemory            = -6
	InvalidValue               = -30 // of SVM and USM: larger than one allocation may be
	InvalidImageSize           = -40
	InvalidBufferSize          = -61
)

// Statuses that drivers return for more than the standard says.
const (
	InvalidMemObject = -38
	InvalidOperation = -59
)

// ReturnedNULL stands for the status of clSVMAlloc, which has none: it returns NULL. Statuses of calls that fail are below 0.
const ReturnedNULL = 1

// CreateStatus returns the status that the program got of a create. CREATE has for clSVMAlloc the one that another call would have had.
func CreateStatus(c CreateView) int32 {
	if c.Memory() == MemorySVM && c.Status() != 0 {
		return ReturnedNULL
	}
	return int32(c.Status())
}

// Status is a status in JSON: null for ReturnedNULL.
type Status int32

// MarshalJSON implements json.Marshaler.
func (s Status) MarshalJSON() ([]byte, error) {
	if s == ReturnedNULL {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(s), 10), nil
}

// StatusName returns the name of what an OpenCL function returned (OpenCL 3.0, appendix A), empty when it is not known.
func StatusName(status int32) string {
	if status == ReturnedNULL {
		return "NULL"
	}
	return statusNames[status]
}

// IsAboutMissingObject reports whether a call fails so that was given memory, or an event, that could not be had: no memory object or event, an
// argument that was never set, or an event that waits for a command that failed. Queues, programs and kernels do not need the program's
// memory.
func IsAboutMissingObject(status int32) bool {
	switch status {
	case -14, -34, -38, -50, -52, -57, -58:
		return true
	}
	return false
}

var statusNames = map[int32]string{
	-1:                         "CL_DEVICE_NOT_FOUND",
	-2:                         "CL_DEVICE_NOT_AVAILABLE",
	-3:                         "CL_COMPILER_NOT_AVAILABLE",
	MemObjectAllocationFailure: "CL_MEM_OBJECT_ALLOCATION_FAILURE",
	OutOfResources:             "CL_OUT_OF_RESOURCES",
	OutOfHostMemory:            "CL_OUT_OF_HOST_MEMORY",
	-7:                         "CL_PROFILING_INFO_NOT_AVAILABLE",
	-8:                         "CL_MEM_COPY_OVERLAP",
	-9:                         "CL_IMAGE_FORMAT_MISMATCH",
	-10:                        "CL_IMAGE_FORMAT_NOT_SUPPORTED",
	-11:                        "CL_BUILD_PROGRAM_FAILURE",
	-12:                        "CL_MAP_FAILURE",
	-13:                        "CL_MISALIGNED_SUB_BUFFER_OFFSET",
	-14:                        "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
	-15:                        "CL_COMPILE_PROGRAM_FAILURE",
	-16:                        "CL_LINKER_NOT_AVAILABLE",
	-17:                        "CL_LINK_PROGRAM_FAILURE",
	-18:                        "CL_DEVICE_PARTITION_FAILED",
	-19:                        "CL_KERNEL_ARG_INFO_NOT_AVAILABLE",
	InvalidValue:               "CL_INVALID_VALUE",
	-31:                        "CL_INVALID_DEVICE_TYPE",
	-32:                        "CL_INVALID_PLATFORM",
	-33:                        "CL_INVALID_DEVICE",
	-34:                        "CL_INVALID_CONTEXT",
	-35:                        "CL_INVALID_QUEUE_PROPERTIES",
	-36:                        "CL_INVALID_COMMAND_QUEUE",
	-37:                        "CL_INVALID_HOST_PTR",
	-38:                        "CL_INVALID_MEM_OBJECT",
	-39:                        "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR",
	InvalidImageSize:           "CL_INVALID_IMAGE_SIZE",
	-41:                        "CL_INVALID_SAMPLER",
	-42:                        "CL_INVALID_BINARY",
	-43:                        "CL_INVALID_BUILD_OPTIONS",
	-44:                        "CL_INVALID_PROGRAM",
	-45:                        "CL_INVALID_PROGRAM_EXECUTABLE",
	-46:                        "CL_INVALID_KERNEL_NAME",
	-47:                        "CL_INVALID_KERNEL_DEFINITION",
	-48:                        "CL_INVALID_KERNEL",
	-49:                        "CL_INVALID_ARG_INDEX",
	-50:                        "CL_INVALID_ARG_VALUE",
	-51:                        "CL_INVALID_ARG_SIZE",
	-52:                        "CL_INVALID_KERNEL_ARGS",
	-53:                        "CL_INVALID_WORK_DIMENSION",
	-54:                        "CL_INVALID_WORK_GROUP_SIZE",
	-55:                        "CL_INVALID_WORK_ITEM_SIZE",
	-56:                        "CL_INVALID_GLOBAL_OFFSET",
	-57:                        "CL_INVALID_EVENT_WAIT_LIST",
	-58:                        "CL_INVALID_EVENT",
	-59:                        "CL_INVALID_OPERATION",
	-60:                        "CL_INVALID_GL_OBJECT",
	InvalidBufferSize:          "CL_INVALID_BUFFER_SIZE",
	-62:                        "CL_INVALID_MIP_LEVEL",
	-63:                        "CL_INVALID_GLOBAL_WORK_SIZE",
	-64:                        "CL_INVALID_PROPERTY",
	-65:                        "CL_INVALID_IMAGE_DESCRIPTOR",
	-66:                        "CL_INVALID_COMPILER_OPTIONS",
	-67:                        "CL_INVALID_LINKER_OPTIONS",
	-68:                        "CL_INVALID_DEVICE_PARTITION_COUNT",
	-69:                        "CL_INVALID_PIPE_SIZE",
	-70:                        "CL_INVALID_DEVICE_QUEUE",
	-1001:                      "CL_PLATFORM_NOT_FOUND_KHR",
}
