package main

import (
	"debug/elf"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// isLoader reports whether the file is a dynamic loader, which the kernel maps
// beside every dynamic program and which must therefore stay what it is. p and
// resolved are the path as given and where it leads.
//
// A loader is a shared object without an interpreter; so is a static program
// that can be loaded anywhere. What tells them apart is the name that the file
// itself or the C library's convention gives it, or that a shell asks for it.
func isLoader(f io.ReaderAt, id fileID, p, resolved string) bool {
	file, err := elf.NewFile(f)
	if err != nil || file.Type != elf.ET_DYN || interpreterOf(file) != "" {
		return false
	}
	names := []string{path.Base(p), path.Base(resolved)}
	if soname, err := file.DynString(elf.DT_SONAME); err == nil {
		names = append(names, soname...)
	}
	for _, n := range names {
		if isLoaderName(n) {
			return true
		}
	}
	var st unix.Stat_t
	if shell, err := os.Open("/bin/sh"); err == nil {
		defer shell.Close()
		if file, err := elf.NewFile(shell); err == nil {
			return unix.Stat(interpreterOf(file), &st) == nil && idOf(&st) == id
		}
	}
	return false
}

// isLoaderName knows ld-linux-x86-64.so.2, ld-linux-aarch64.so.1, ld-2.31.so,
// ld-musl-x86_64.so.1, ld64.so.1 and ld.so.1.
func isLoaderName(name string) bool {
	for _, prefix := range []string{"ld-", "ld.so", "ld64.so"} {
		if strings.HasPrefix(name, prefix) && strings.Contains(name, ".so") {
			return true
		}
	}
	return false
}

func interpreterOf(file *elf.File) string {
	for _, p := range file.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		buf := make([]byte, min(p.Filesz, unix.PathMax))
		n, _ := p.ReadAt(buf, 0)
		return strings.TrimRight(string(buf[:n]), "\x00")
	}
	return ""
}
