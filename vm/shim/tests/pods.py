"""The cases of pods of Kubernetes, through containerd's CRI plugin."""
CASES = []
