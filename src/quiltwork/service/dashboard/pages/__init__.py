"""The pages: functions from a request to what is shown."""
