"""Read remote files without downloading them: by byte ranges, from a folder, a web server or the Hub."""
