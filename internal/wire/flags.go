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

// Bits of Event.Access that say where the bytes of a buffer are and come from (cl_mem_flags, OpenCL 3.0 §5.2.1).
const (
	UseHostPtr   = 1 << 3 // the memory is the program's own
	AllocHostPtr = 1 << 4
	CopyHostPtr  = 1 << 5 // the create copies the program's bytes
)
