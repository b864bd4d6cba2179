"""last: no selection. The last checkpoint of the first setting, regardless of validation scores."""

PART = ""
