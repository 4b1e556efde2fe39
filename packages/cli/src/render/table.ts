/** Renders rows below a head, each column as wide as its widest cell, two blanks between them; no blanks at the end of a line. */
export function renderTable(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [head, ...rows];
  const widths = head.map((_cell, column) => Math.max(...all.map((row) => displayWidth(row[column] ?? ''))));
  return all.map((row) =>
    head
      .map((_cell, column) => {
        const cell = row[column] ?? '';
        return cell + ' '.repeat((widths[column] ?? 0) - displayWidth(cell));
      })
      .join('  ')
      .trimEnd(),
  );
}

/** Columns that a text takes: wide characters of East Asian scripts and emoji take two, combining marks none. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const char of text) {
    if (/\p{Mark}/u.test(char)) continue;
    width += /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u.test(
      char,
    )
      ? 2
      : 1;
  }
  return width;
}
