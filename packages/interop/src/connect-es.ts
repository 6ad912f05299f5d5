/** A service for Connect-ES, described in code: all four kinds of calls, of `google.protobuf.BytesValue`. */
import { create, createFileRegistry, toBinary, type DescService } from '@bufbuild/protobuf'
import {
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
  FileDescriptorSetSchema,
  FileDescriptorProtoSchema,
  MethodDescriptorProtoSchema,
} from '@bufbuild/protobuf/wkt'

const method = (name: string, clientStreaming: boolean, serverStreaming: boolean) =>
  create(MethodDescriptorProtoSchema, {
    name,
    inputType: '.heddle.test.Piece',
    outputType: '.heddle.test.Piece',
    clientStreaming,
    serverStreaming,
  })

const file = create(FileDescriptorProtoSchema, {
  name: 'heddle/test.proto',
  package: 'heddle.test',
  syntax: 'proto3',
  messageType: [{ name: 'Piece', field: [{ name: 'content', number: 1, type: Type.BYTES, label: Label.OPTIONAL, jsonName: 'content' }] }],
  service: [
    {
      name: 'Pieces',
      method: [method('Unary', false, false), method('Client', true, false), method('Server', false, true), method('Both', true, true)],
    },
  ],
})

/** `heddle.test.Pieces`: Unary gives back its piece, Client one of all, Server each octet alone, Both each piece at once. */
export const pieces: DescService = createFileRegistry(create(FileDescriptorSetSchema, { file: [file] })).getService(
  'heddle.test.Pieces',
) as DescService

/** One message of the service. */
export interface Piece {
  readonly content: Uint8Array
}

/** The message as gRPC carries it. */
export function pieceOctets(content: Uint8Array): Uint8Array {
  return toBinary(pieces.methods[0]!.input, create(pieces.methods[0]!.input, { content } as never))
}
