"""Dynamic load adjustment (Sec. V): when the workload drifts, load moves between running workers."""
