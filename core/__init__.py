"""What every room stands on: errors, plug-ins, canonical bytes, draws, files, progress, engines, figures."""
