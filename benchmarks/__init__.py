"""What is *measured*, and how surely: benchmark definitions, the fixed harness, metrics, intervals."""
