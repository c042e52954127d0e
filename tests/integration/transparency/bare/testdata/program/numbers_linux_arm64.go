package main

const (
	execveat = 281
	ioprio   = 31
)
