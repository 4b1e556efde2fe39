// Every npm script starts here, in syntax that old versions of Node can parse, so that they get a sentence instead of a syntax error.
'use strict';
var version = process.versions.node.split('.');
var major = Number(version[0]);
var minor = Number(version[1]);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(
    'Firecrew needs Node 20.19 or newer to start (it then brings its own Node 24); this is Node ' + process.versions.node + '.',
  );
  process.exit(1);
}
require('./bootstrap/load.cjs');
