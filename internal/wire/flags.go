package wire

// Bits of Event.Access that say where the bytes of a buffer are and come from (cl_mem_flags, OpenCL 3.0 §5.2.1).
const (
	UseHostPtr   = 1 << 3 // the memory is the program's own
	AllocHostPtr = 1 << 4
	CopyHostPtr  = 1 << 5 // the create copies the program's bytes
)
