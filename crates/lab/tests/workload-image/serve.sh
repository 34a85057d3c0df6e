#!/bin/sh
# Serves the pod's name, so that a client sees which pod answered.
echo "$GREETING from user $(id -u)"
hostname > /data/index.html
exec busybox httpd -f -p 8080 -h /data
