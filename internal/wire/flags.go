package wire

// Bits of Event.Access: how a program wants memory (cl_mem_flags and cl_svm_mem_flags, OpenCL 3.0 §5.2.1 and §5.6.1).
const (
	ReadWrite          = 1 << 0
	WriteOnly          = 1 << 1
	ReadOnly           = 1 << 2
	UseHostPtr         = 1 << 3 // the memory is the program's own
	AllocHostPtr       = 1 << 4
	CopyHostPtr        = 1 << 5 // the create copies the program's bytes
	HostWriteOnly      = 1 << 7
	HostReadOnly       = 1 << 8
	HostNoAccess       = 1 << 9
	SVMFineGrainBuffer = 1 << 10
	SVMAtomics         = 1 << 11
	KernelReadAndWrite = 1 << 12
)
