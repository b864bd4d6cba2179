"""What every other package stands on: errors, settings, plug-ins, canonical bytes, draws,
files, retries, progress, engines, listings, text."""
