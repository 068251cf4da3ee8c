package wire

import (
	"fmt"
	"unsafe"
)

// DecodeSample reads what the eBPF program wrote into its ring. The slices of the sample point into raw.
func DecodeSample(raw []byte, s *Sample) error {
	if len(raw) < SizeofCall {
		return fmt.Errorf("a call of %d bytes, want at least %d", len(raw), SizeofCall)
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&s.Call)), SizeofCall), raw)
	raw = raw[SizeofCall:]
	data, stack := int(s.Data), int(s.Stack)
	if data != 0 && data != CallData || len(raw) < data+stack {
		return fmt.Errorf("a call with %d bytes of copies and %d of stack in %d bytes", data, stack, len(raw))
	}
	s.Copies, s.Memory = nil, raw[data:data+stack]
	if data > 0 {
		s.Copies = raw[:data]
	}
	return nil
}

// AppendSample writes a sample as the eBPF program does.
func AppendSample(raw []byte, s *Sample) []byte {
	s.Data, s.Stack = uint16(len(s.Copies)), uint16(len(s.Memory))
	raw = append(raw, unsafe.Slice((*byte)(unsafe.Pointer(&s.Call)), SizeofCall)...)
	raw = append(raw, s.Copies...)
	return append(raw, s.Memory...)
}
