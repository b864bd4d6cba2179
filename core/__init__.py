"""What every other package stands on: errors, plug-ins, canonical bytes, draws, files, progress, engines, figures."""
