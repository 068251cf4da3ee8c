package wire

// Statuses of calls that fail for lack of memory.
const (
	MemObjectAllocationFailure = -4
	OutOfResources             = -5
	OutOfHostMemory            = -6
	InvalidValue               = -30 // of SVM and USM: larger than one allocation may be
	InvalidImageSize           = -40
	InvalidBufferSize          = -61
)

// StatusName returns the name of what an OpenCL function returned, empty when it is not known: those of creates (OpenCL 3.0 §5) and
// of looking for devices are.
func StatusName(status int32) string { return statusNames[status] }

var statusNames = map[int32]string{
	-1:                         "CL_DEVICE_NOT_FOUND",
	MemObjectAllocationFailure: "CL_MEM_OBJECT_ALLOCATION_FAILURE",
	OutOfResources:             "CL_OUT_OF_RESOURCES",
	OutOfHostMemory:            "CL_OUT_OF_HOST_MEMORY",
	-10:                        "CL_IMAGE_FORMAT_NOT_SUPPORTED",
	-13:                        "CL_MISALIGNED_SUB_BUFFER_OFFSET",
	InvalidValue:               "CL_INVALID_VALUE",
	-34:                        "CL_INVALID_CONTEXT",
	-37:                        "CL_INVALID_HOST_PTR",
	-38:                        "CL_INVALID_MEM_OBJECT",
	-39:                        "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR",
	InvalidImageSize:           "CL_INVALID_IMAGE_SIZE",
	-59:                        "CL_INVALID_OPERATION",
	InvalidBufferSize:          "CL_INVALID_BUFFER_SIZE",
	-64:                        "CL_INVALID_PROPERTY",
	-65:                        "CL_INVALID_IMAGE_DESCRIPTOR",
	-1001:                      "CL_PLATFORM_NOT_FOUND_KHR",
}
