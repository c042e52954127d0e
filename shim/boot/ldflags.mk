# The linker flags without which a shim does not work: its entry point, and the
# marker by which one shim knows another (16 bytes, then the marker's format).
# They need internal linking: CGO_ENABLED=0.
BOOT_ENTRY   := _sandbox_exec_shim_entry
BOOT_MARKER  := 0x11a900b827efd2cbcf7e615a3da8eef600000001
BOOT_LDFLAGS := -E $(BOOT_ENTRY) -B $(BOOT_MARKER)
