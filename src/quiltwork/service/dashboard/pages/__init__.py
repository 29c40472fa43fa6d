"""The pages: functions from a visit to what is shown."""
