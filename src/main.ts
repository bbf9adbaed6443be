/*
 * The first file of a start. An old Node cannot parse the service, so this file has the syntax of Node 8, imports nothing before
 * its check, and says what is missing (docs/deployment.md#systemd). Versions and code are held to package.json and the unit by
 * test/command/first-file.test.ts.
 */
if (Number(process.versions.node.split('.')[0]) < 24) {
  process.stderr.write(
    'signalbox: ' +
      process.execPath +
      ' is Node ' +
      process.versions.node +
      ', and the service needs Node 26.12.1 or newer, or 24.18.1 or newer of that line: start it with such a Node (docs/deployment.md, systemd).\n',
  )
  process.exitCode = 78
} else {
  void import('./command/run.ts').then((command) => command.run())
}
