package target

// Mapping is one line of /proc/PID/maps: a range of addresses and the file that is mapped there.
type Mapping struct {
	Start, End uint64 // addresses; End is exclusive
	Offset     uint64 // of Start in the file
	Exec       bool   // code can run from it
	Device     uint64 // as in st_dev of stat(2), which may differ on btrfs and overlayfs
	Inode      uint64 // 0: no file
	Path       string // as the process sees it, without " (deleted)"; without a file "" or like "[stack]"
}
