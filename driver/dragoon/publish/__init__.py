"""GPUs to devices to ResourceSlices, and the reconciler that keeps them published (DESIGN section 4)."""
