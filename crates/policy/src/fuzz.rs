//! Private functions for the fuzz targets (`fuzz/`). Compiled only with `--cfg fuzzing`.

/// The host of a URL, as `host_in` reads it.
pub fn host_of_url(text: &str) -> Option<String> {
    crate::host::of_url(text)
}
