/**
 * `form` as multipart/form-data (Fetch §6.3; WHATWG HTML §4.10.21.8): a Blob, so its length is known
 * and files are read only when they are sent. Its type names the boundary.
 */
export function multipart(form: FormData): Blob {
  const boundary = `----heddle-${crypto.randomUUID()}`
  const parts: (string | Blob)[] = []
  for (const [name, value] of form) {
    const disposition = `--${boundary}\r\ncontent-disposition: form-data; name="${escaped(normalized(name))}"`
    if (typeof value === 'string') {
      parts.push(`${disposition}\r\n\r\n${normalized(value)}\r\n`)
    } else {
      const file = value as File
      parts.push(
        `${disposition}; filename="${escaped(file.name)}"\r\ncontent-type: ${file.type === '' ? 'application/octet-stream' : file.type}\r\n\r\n`,
        file,
        '\r\n',
      )
    }
  }
  parts.push(`--${boundary}--\r\n`)
  return new Blob(parts, { type: `multipart/form-data; boundary=${boundary}` })
}

/** Line ends as the form encoding wants them. */
function normalized(text: string): string {
  return text.replace(/\r\n|\r|\n/g, '\r\n')
}

function escaped(text: string): string {
  return text.replace(/\r/g, '%0D').replace(/\n/g, '%0A').replace(/"/g, '%22')
}
