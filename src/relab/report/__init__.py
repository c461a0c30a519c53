"""What would one show a colleague? Run folders as one page: Markdown and HTML (sections.py data, render.py pages)."""
